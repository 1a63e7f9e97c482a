/* Write the classes of a label at the stored size, and count the pixels of each.

out[y][x] = table[numbers[rows[y]][columns[x]]]

`rows` and `columns` name the pixel that is taken, by the nearest rule or any other. A line that is taken twice is copied.
Classes come in long runs, so pixels are counted by eights: eight that are equal cost one addition. A label that keeps its
width is also looked up by eights. */
#include "kernel.h"

static void sample_line(uint8_t *out, const uint8_t *line, const int64_t *columns, Py_ssize_t width, const uint8_t *table) {
    for (Py_ssize_t x = 0; x < width; x++) out[x] = table[line[columns[x]]];
}

/* Look up a whole line: eight equal numbers with one look into the table. */
static void map_line(uint8_t *out, const uint8_t *line, Py_ssize_t width, const uint8_t *table) {
    Py_ssize_t x = 0;
    for (; x + 8 <= width; x += 8) {
        uint64_t eight;
        memcpy(&eight, line + x, 8);
        if (eight == line[x] * 0x0101010101010101u) memset(out + x, table[line[x]], 8);
        else for (int k = 0; k < 8; k++) out[x + k] = table[line[x + k]];
    }
    for (; x < width; x++) out[x] = table[line[x]];
}

static int is_every_pixel(const int64_t *columns, Py_ssize_t width) {
    for (Py_ssize_t x = 0; x < width; x++)
        if (columns[x] != x) return 0;
    return 1;
}

static void count_line(const uint8_t *line, Py_ssize_t width, int64_t counts[2][256]) {
    Py_ssize_t x = 0;
    for (; x + 8 <= width; x += 8) {
        uint64_t eight;
        memcpy(&eight, line + x, 8);
        if (eight == line[x] * 0x0101010101010101u) counts[0][line[x]] += 8;
        else for (int k = 0; k < 8; k++) counts[k % 2][line[x + k]]++;
    }
    for (; x < width; x++) counts[0][line[x]]++;
}

static void sample_all(const Py_buffer *numbers, const uint8_t *table, const int64_t *rows, const int64_t *columns,
                       const Py_buffer *out, int64_t *counts) {
    int64_t both[2][256] = {{0}};
    Py_ssize_t width = out->shape[1];
    int whole_lines = is_every_pixel(columns, width);
    for (Py_ssize_t y = 0; y < out->shape[0]; y++) {
        uint8_t *line = (uint8_t *)out->buf + y * out->strides[0];
        const uint8_t *taken = (const uint8_t *)numbers->buf + rows[y] * numbers->strides[0];
        if (y > 0 && rows[y] == rows[y - 1]) memcpy(line, line - out->strides[0], (size_t)width);
        else if (whole_lines) map_line(line, taken, width, table);
        else sample_line(line, taken, columns, width, table);
        count_line(line, width, both);
    }
    for (int c = 0; c < 256; c++) counts[c] = both[0][c] + both[1][c];
}

/* Return whether there is a pixel to take for each of `count`, and each is among those that there are. */
static int all_within(const Py_buffer *taken, Py_ssize_t count, Py_ssize_t size) {
    const int64_t *places = taken->buf;
    if (taken->shape[0] != count) return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (places[i] < 0 || places[i] >= size) return 0;
    return 1;
}

static PyObject *sample(PyObject *module, PyObject *arguments) {
    static const char *const names[] = {"numbers", "table", "rows", "columns", "out", "counts"};
    static const int axes[] = {2, 1, 1, 1, 2, 1}, itemsizes[] = {1, 1, 8, 8, 1, 8};
    PyObject *objects[6], *result = NULL;
    Py_buffer views[6], *numbers = views, *table = views + 1, *rows = views + 2, *columns = views + 3, *out = views + 4;
    int held = 0;
    if (!PyArg_ParseTuple(arguments, "OOOOOO", objects, objects + 1, objects + 2, objects + 3, objects + 4, objects + 5))
        return NULL;
    for (; held < 6; held++)
        if (!get_array(objects[held], views + held, axes[held], itemsizes[held], held >= 4, names[held])) goto release;
    if (table->shape[0] != 256 || views[5].shape[0] != 256) {
        PyErr_SetString(PyExc_ValueError, "table, counts: expected 256 numbers");
        goto release;
    }
    if (!all_within(rows, out->shape[0], numbers->shape[0]) || !all_within(columns, out->shape[1], numbers->shape[1])) {
        PyErr_SetString(PyExc_ValueError, "rows, columns: not one pixel of the label for each of the output");
        goto release;
    }
    for (int read = 0; read < 4; read++)
        if (!are_apart(out, views + read) || !are_apart(views + 5, views + read)) goto release;
    if (!are_apart(out, views + 5)) goto release;
    Py_BEGIN_ALLOW_THREADS
    sample_all(numbers, table->buf, rows->buf, columns->buf, out, views[5].buf);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held) PyBuffer_Release(views + --held);
    return result;
}

static PyMethodDef functions[] = {
    {"sample", sample, METH_VARARGS,
     "sample(numbers, table, rows, columns, out, counts): write table[numbers[rows[y]][columns[x]]] to (h, w) bytes, and how "
     "often each of 256 classes was written. `rows`, `columns` and `counts` have 64 bits."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(sample_kernel, "Write the classes of a label at the stored size.", functions)
