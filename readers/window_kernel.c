/* Copy windows of pictures, line by line, as they are or mirrored.

A window's lines lie far apart in the picture, so the CPU does not foresee the next ones: they are requested while a line
is copied. Lines of a large window are stored past the caches, as whole rows are (readers/formats/gather_kernel.c says why).
A mirrored line is read from its end, 32 pixels at a time, and turned in a register. */
#include "kernel.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

static void mirror_plain(uint8_t *to, const uint8_t *from, Py_ssize_t width, Py_ssize_t item) {
    for (Py_ssize_t x = 0; x < width; x++) memcpy(to + x * item, from + (width - 1 - x) * item, (size_t)item);
}

#ifdef X86
#define LINE 64
#define AHEAD 3 /* lines: one was measured to be too few, with none it takes a tenth longer */

AVX2 static inline __m256i mirrored(__m256i pixels) {
    const __m256i backwards = _mm256_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11,
                                               10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pixels, backwards), 0x4E); /* 0x4E swaps the two halves */
}

/* Copy a line of bytes. The target begins anywhere; stores past the caches need multiples of 32. */
AVX2 static void line_avx2(uint8_t *to, const uint8_t *from, Py_ssize_t width, int flip) {
    const Py_ssize_t head = -(uintptr_t)to & 31;
    Py_ssize_t x = head < width ? head : width;
    if (flip) mirror_plain(to, from + width - x, x, 1);
    else memcpy(to, from, (size_t)x);
    for (; x + 32 <= width; x += 32) {
        const uint8_t *source = flip ? from + width - x - 32 : from + x;
        __m256i pixels = _mm256_loadu_si256((const __m256i *)source);
        _mm256_stream_si256((__m256i *)(to + x), flip ? mirrored(pixels) : pixels);
    }
    if (flip) mirror_plain(to + x, from, width - x, 1);
    else memcpy(to + x, from + x, (size_t)(width - x));
}

static inline void request(const uint8_t *line, Py_ssize_t bytes) {
    for (Py_ssize_t offset = 0; offset < bytes; offset += LINE) _mm_prefetch((const char *)line + offset, _MM_HINT_T0);
}
#endif

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_plane, from_line;
    uint8_t *to;
    Py_ssize_t height, width;
    int flip;
} Window;

/* Copy a window, or the part of it that lies in a tile, into planes and lines as those of `out`. */
static void copy_window(const Window *window, const Py_buffer *out, int past_caches) {
    const Py_ssize_t *shape = out->shape + out->ndim - 3, *strides = out->strides + out->ndim - 3;
    const Py_ssize_t height = window->height, width = window->width, item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < shape[0]; plane++)
        for (Py_ssize_t y = 0; y < height; y++) {
            uint8_t *to = window->to + plane * strides[0] + y * strides[1];
            const uint8_t *from = window->from + plane * window->from_plane + y * window->from_line;
#ifdef X86
            if (past_caches && (item == 1 || !window->flip)) {
                if (y + AHEAD < height) request(from + AHEAD * window->from_line, width * item);
                line_avx2(to, from, width * item, window->flip);
                continue;
            }
#endif
            if (window->flip) mirror_plain(to, from, width, item);
            else memcpy(to, from, (size_t)(width * item));
        }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

static PyObject *copy(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *result = NULL;
    Py_buffer pixels, out;
    int flip;
    if (!PyArg_ParseTuple(arguments, "OOp", &pixels_object, &out_object, &flip)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 0, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, 0, 1, "out")) goto release_pixels;
    if (memcmp(out.shape, pixels.shape, 3 * sizeof(Py_ssize_t)) || out.itemsize != pixels.itemsize) {
        PyErr_SetString(PyExc_ValueError, "out: the window is not as large as the pixels");
        goto release_out;
    }
    if (!are_apart(&out, &pixels)) goto release_out;
    const Window window = {pixels.buf, pixels.strides[0], pixels.strides[1], out.buf, out.shape[1], out.shape[2], flip};
    const int past_caches = has_avx2() && out.len >= LARGE;
    Py_BEGIN_ALLOW_THREADS
    if (out.len) copy_window(&window, &out, past_caches);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

/* Fill in a window of a picture that lies in a file. Return 0 with an exception set if any of it lies outside. */
static int find_window(Window *window, const Py_buffer *data, PyObject *arguments, const Py_buffer *out) {
    long long start, height, width, target, top, left;
    if (!PyArg_ParseTuple(arguments, "LLLLLLp", &start, &height, &width, &target, &top, &left, &window->flip)) return 0;
    const Py_ssize_t *shape = out->shape, pixels = data->shape[0] / out->itemsize;
    if (height < 1 || width < 1 || width > pixels || height > pixels / width || shape[1] > pixels / width / height ||
        start < 0 || start > data->shape[0] - shape[1] * height * width * out->itemsize || target < 0 ||
        target >= shape[0] || top < 0 || top > height - shape[2] || left < 0 || left > width - shape[3]) {
        PyErr_SetString(PyExc_ValueError, "copy_all: a window lies outside of its picture, of the file or of the batch");
        return 0;
    }
    window->from_line = width * out->itemsize;
    window->from_plane = height * window->from_line;
    window->from = (const uint8_t *)data->buf + start + top * window->from_line + left * out->itemsize;
    window->to = (uint8_t *)out->buf + target * out->strides[0];
    window->height = shape[2], window->width = shape[3];
    return 1;
}

/* One call for a batch, as each waits for the GIL. All is checked before anything is written. */
static PyObject *copy_all(PyObject *module, PyObject *arguments) {
    PyObject *pictures, *out_object, *data, *numbers, *result = NULL;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyList_Type, &pictures, &out_object)) return NULL;
    if (!get_array(out_object, &out, 4, 0, 1, "out")) return NULL;
    const Py_ssize_t count = PyList_Size(pictures);
    Py_ssize_t held = 0;
    Py_buffer *views = calloc((size_t)count + 1, sizeof(Py_buffer));
    Window *windows = calloc((size_t)count + 1, sizeof(Window));
    if (!views || !windows) {
        PyErr_NoMemory();
        goto release;
    }
    while (held < count) {
        PyObject *picture = PyList_GetItem(pictures, held);
        if (!picture || !PyArg_ParseTuple(picture, "OO!", &data, &PyTuple_Type, &numbers)) goto release;
        if (!get_array(data, &views[held], 1, 1, 0, "data")) goto release;
        if (!are_apart(&out, &views[held]) || !find_window(&windows[held], &views[held], numbers, &out)) {
            held++;
            goto release;
        }
        held++;
    }
    const int past_caches = has_avx2() && out.len >= LARGE;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t n = 0; out.len && n < count; n++) copy_window(&windows[n], &out, past_caches);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held > 0) PyBuffer_Release(&views[--held]);
    free(views);
    free(windows);
    PyBuffer_Release(&out);
    return result;
}

#define END 8    /* bytes of a number of the table before the tiles: where a tile ends */
#define ALIGNED 64 /* a tile begins at a multiple of so many bytes of its row */

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
    if (!PyArg_ParseTuple(arguments, "LLLLLLLLLp", &row->start, &row->length, &row->height, &row->width, &row->high,
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
    PyErr_SetString(PyExc_ValueError, "copy_tiles: a window or a table lies outside of its row, of the file or of the batch");
    return 0;
}

/* Fill in the parts of a window that lie in tiles, one for each. Each end is read once, as another process may change it.
   Return 0 with an exception set if a tile lies outside of its row, or has another size than it should. */
static int find_tiles(Window *part, const TiledRow *row, const Py_buffer *data, const Py_buffer *out) {
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
                    const long long column = row->flip ? right - left - part->width : left - row->left;
                    part->to = (uint8_t *)out->buf + row->target * strides[0] + (top - row->top) * strides[2] + column * item;
                    continue;
                }
            }
            PyErr_SetString(PyExc_ValueError, "copy_tiles: a tile lies outside of its row, or has another size");
            return 0;
        }
    return 1;
}

/* As copy_all, of rows in tiles. */
static PyObject *copy_tiles(PyObject *module, PyObject *arguments) {
    PyObject *rows_object, *out_object, *data, *numbers, *result = NULL;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyList_Type, &rows_object, &out_object)) return NULL;
    if (!get_array(out_object, &out, 4, 0, 1, "out")) return NULL;
    const Py_ssize_t count = PyList_Size(rows_object);
    Py_ssize_t held = 0, parts = 0, done = 0;
    Py_buffer *views = calloc((size_t)count + 1, sizeof(Py_buffer));
    TiledRow *rows = calloc((size_t)count + 1, sizeof(TiledRow));
    Window *windows = NULL;
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
    windows = calloc((size_t)parts + 1, sizeof(Window));
    if (!windows) {
        PyErr_NoMemory();
        goto release;
    }
    for (Py_ssize_t n = 0; n < count; done += rows[n++].touched)
        if (!find_tiles(windows + done, &rows[n], &views[n], &out)) goto release;
    Py_BEGIN_ALLOW_THREADS /* not past the caches: the lines of a tile are short, and parts of a cache line are stored slowly */
    for (Py_ssize_t n = 0; n < parts; n++) copy_window(&windows[n], &out, 0);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held > 0) PyBuffer_Release(&views[--held]);
    free(views);
    free(rows);
    free(windows);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"copy", copy, METH_VARARGS, "copy(pixels, out, flip): copy (C, H, W) pixels of 1 or 2 bytes into `out`, mirrored if `flip`."},
    {"copy_all", copy_all, METH_VARARGS,
     "copy_all(pictures, out): copy a window of each picture, (data, (start, height, width, target, top, left, flip)), into out[target]."},
    {"copy_tiles", copy_tiles, METH_VARARGS,
     "copy_tiles(rows, out): copy a window of each row in tiles of raw pixels, (data, (start, length, height, width, tile height, "
     "tile width, target, top, left, flip)), into out[target]."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(window_kernel, "Windows of pictures, as they are or mirrored.", functions)
