/* Copy windows of rows in tiles of raw pixels, as they are or mirrored (readers/contract/FORMAT.md, tiles).

A row begins with the ends of its tiles. Another process may change the file, so each end is read once, and checked before
an address follows from it. Lines of tiles are short: stored past the caches, as window_kernel.c does, they took seven times
as long, because the parts of a cache line that two tiles share are stored one by one. */
#include "kernel.h"

enum { COLUMNS = 1, LINES = 2 }; /* bits of a flip: what it turns around */

#define END 8    /* bytes of a number of the table before the tiles: where a tile ends */
#define ALIGNED 64 /* a tile begins at a multiple of so many bytes of its row */

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_plane, from_line;
    uint8_t *to;
    Py_ssize_t height, width;
    int flip;
} Part; /* of a window, in one tile */

/* A row in tiles, and the window of it. All are numbers of pixels, but for start and length, which are bytes. */
typedef struct {
    long long start, length, height, width, target, top, left, high, wide;
    int flip;
    Py_ssize_t touched; /* tiles that the window touches */
} TiledRow;

static inline long long least(long long a, long long b) { return a < b ? a : b; }
static inline long long most(long long a, long long b) { return a > b ? a : b; }

/* Fill in a row. Return 0 with an exception set if its window or its table lies outside. */
static int find_row(TiledRow *row, const Py_buffer *data, PyObject *arguments, const Py_buffer *out) {
    if (!PyArg_ParseTuple(arguments, "LLLLLLLLLi", &row->start, &row->length, &row->height, &row->width, &row->high,
                          &row->wide, &row->target, &row->top, &row->left, &row->flip))
        return 0;
    const Py_ssize_t *shape = out->shape, bytes = data->shape[0];
    if (row->height >= 1 && row->width >= 1 && row->high >= 1 && row->wide >= 1 && row->length >= 0 && row->length <= bytes &&
        row->start >= 0 && row->start <= bytes - row->length && row->target >= 0 && row->target < shape[0] && row->top >= 0 &&
        row->top <= row->height - shape[2] && row->left >= 0 && row->left <= row->width - shape[3] && out->len) {
        row->high = least(row->high, row->height), row->wide = least(row->wide, row->width);
        const long long down = (row->height - 1) / row->high + 1, across = (row->width - 1) / row->wide + 1;
        row->touched = (Py_ssize_t)(((row->top + shape[2] - 1) / row->high - row->top / row->high + 1) *
                                    ((row->left + shape[3] - 1) / row->wide - row->left / row->wide + 1));
        if (across <= row->length / END && down <= row->length / END / across) return 1;
    }
    PyErr_SetString(PyExc_ValueError, "copy_all: a window or a table lies outside of its row, of the file or of the batch");
    return 0;
}

/* Fill in the parts of a window that lie in tiles, one for each. Each end is read once, as another process may change it.
   Return 0 with an exception set if a tile lies outside of its row, or has another size than it should. */
static int find_tiles(Part *part, const TiledRow *row, const Py_buffer *data, const Py_buffer *out) {
    const Py_ssize_t *shape = out->shape, *strides = out->strides, item = out->itemsize;
    const uint8_t *bytes = (const uint8_t *)data->buf + row->start;
    const long long across = (row->width - 1) / row->wide + 1, count = across * ((row->height - 1) / row->high + 1);
    const long long bottom = row->top + shape[2], right = row->left + shape[3];
    for (long long y = row->top / row->high; y * row->high < bottom; y++)
        for (long long x = row->left / row->wide; x * row->wide < right; x++, part++) {
            const long long number = y * across + x, above = y * row->high, before = x * row->wide;
            const long long lines = least(row->high, row->height - above), columns = least(row->wide, row->width - before);
            const uint64_t length = (uint64_t)row->length, planes = (uint64_t)shape[1];
            uint64_t start = END * (uint64_t)count, end;
            if (number) memcpy(&start, bytes + END * (number - 1), END);
            memcpy(&end, bytes + END * number, END);
            if (start <= length && end <= length && lines <= row->length / columns) {
                start = (start + ALIGNED - 1) / ALIGNED * ALIGNED;
                const uint64_t plane = (uint64_t)(lines * columns * item);
                if (start < end && (end - start) / planes == plane && (end - start) % planes == 0 &&
                    (number + 1 < count || end == length)) {
                    const long long top = most(row->top, above), left = most(row->left, before);
                    part->height = least(bottom, above + lines) - top;
                    part->width = least(right, before + columns) - left;
                    part->flip = row->flip;
                    part->from_line = columns * item;
                    part->from_plane = (Py_ssize_t)plane;
                    part->from = bytes + start + (top - above) * part->from_line + (left - before) * item;
                    const long long column = row->flip & COLUMNS ? right - left - part->width : left - row->left;
                    const long long line = row->flip & LINES ? bottom - 1 - top : top - row->top;
                    part->to = (uint8_t *)out->buf + row->target * strides[0] + line * strides[2] + column * item;
                    continue;
                }
            }
            PyErr_SetString(PyExc_ValueError, "copy_all: a tile lies outside of its row, or has another size");
            return 0;
        }
    return 1;
}

#ifdef X86
/* The loop that a compiler turns into registers of 32 bytes. */
AVX2 static void mirror_avx2(uint8_t *restrict to, const uint8_t *restrict from, Py_ssize_t width) {
    for (Py_ssize_t x = 0; x < width; x++) to[x] = from[width - 1 - x];
}
#endif

static void copy_part(const Part *part, const Py_buffer *out, int avx2) {
    const Py_ssize_t item = out->itemsize, width = part->width;
    for (Py_ssize_t plane = 0; plane < out->shape[1]; plane++)
        for (Py_ssize_t y = 0; y < part->height; y++) {
            uint8_t *to = part->to + plane * out->strides[1] + (part->flip & LINES ? -y : y) * out->strides[2];
            const uint8_t *from = part->from + plane * part->from_plane + y * part->from_line;
            if (!(part->flip & COLUMNS)) {
                memcpy(to, from, (size_t)(width * item));
                continue;
            }
#ifdef X86
            if (avx2 && item == 1) {
                mirror_avx2(to, from, width);
                continue;
            }
#endif
            for (Py_ssize_t x = 0; x < width; x++) memcpy(to + x * item, from + (width - 1 - x) * item, (size_t)item);
        }
}

/* One call for a batch, as each waits for the GIL. All is checked before anything is written. */
static PyObject *copy_all(PyObject *module, PyObject *arguments) {
    PyObject *rows_object, *out_object, *data, *numbers, *result = NULL;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyList_Type, &rows_object, &out_object)) return NULL;
    if (!get_array(out_object, &out, 4, 0, 1, "out")) return NULL;
    const Py_ssize_t count = PyList_Size(rows_object);
    Py_ssize_t held = 0, parts = 0, done = 0;
    Py_buffer *views = calloc((size_t)count + 1, sizeof(Py_buffer));
    TiledRow *rows = calloc((size_t)count + 1, sizeof(TiledRow));
    Part *found = NULL;
    if (!views || !rows) {
        PyErr_NoMemory();
        goto release;
    }
    while (held < count) {
        PyObject *row = PyList_GetItem(rows_object, held);
        if (!row || !PyArg_ParseTuple(row, "OO!", &data, &PyTuple_Type, &numbers)) goto release;
        if (!get_array(data, &views[held], 1, 1, 0, "data")) goto release;
        held++;
        if (!are_apart(&out, &views[held - 1]) || !find_row(&rows[held - 1], &views[held - 1], numbers, &out)) goto release;
        parts += rows[held - 1].touched;
    }
    found = calloc((size_t)parts + 1, sizeof(Part));
    if (!found) {
        PyErr_NoMemory();
        goto release;
    }
    for (Py_ssize_t n = 0; n < count; done += rows[n++].touched)
        if (!find_tiles(found + done, &rows[n], &views[n], &out)) goto release;
    const int avx2 = has_avx2();
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t n = 0; n < parts; n++) copy_part(&found[n], &out, avx2);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held > 0) PyBuffer_Release(&views[--held]);
    free(views);
    free(rows);
    free(found);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"copy_all", copy_all, METH_VARARGS,
     "copy_all(rows, out): copy a window of each row in tiles, (data, (start, length, height, width, tile height, tile width, "
     "target, top, left, flip)), into out[target]."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(tile_kernel, "Windows of rows in tiles, as they are or mirrored.", functions)
