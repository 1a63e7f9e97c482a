/* Count the pixels of each class in each cell of a label.

Neighbours mostly have one class: 8 bytes of equal numbers are counted as one. A number beyond the classes, such as that of
ignored pixels, is not counted. */
#include "kernel.h"

static void count_bytes(uint16_t *cells, const uint8_t *line, Py_ssize_t width, Py_ssize_t columns, unsigned classes) {
    for (Py_ssize_t x = 0; x < width; cells += classes) {
        Py_ssize_t end = width - x < columns ? width : x + columns;
        for (; x + 8 <= end; x += 8) {
            uint64_t eight;
            memcpy(&eight, line + x, 8);
            unsigned first = eight & 0xFF;
            if (eight == first * UINT64_C(0x0101010101010101)) {
                if (first < classes) cells[first] += 8;
                continue;
            }
            for (int i = 0; i < 8; i++, eight >>= 8)
                if ((unsigned)(eight & 0xFF) < classes) cells[eight & 0xFF]++;
        }
        for (; x < end; x++) {
            unsigned number = line[x];
            if (number < classes) cells[number]++;
        }
    }
}

static void count_words(uint16_t *cells, const uint8_t *line, Py_ssize_t width, Py_ssize_t columns, unsigned classes) {
    for (Py_ssize_t x = 0; x < width; cells += classes)
        for (Py_ssize_t end = width - x < columns ? width : x + columns; x < end; x++) {
            uint16_t number;
            memcpy(&number, line + 2 * x, 2);
            if (number < classes) cells[number]++;
        }
}

static Py_ssize_t parts_of(Py_ssize_t side, Py_ssize_t length) { return side > 0 ? (side - 1) / length + 1 : 0; }

static PyObject *count(PyObject *module, PyObject *arguments) {
    PyObject *index_object, *out_object, *result = NULL;
    Py_buffer index, out;
    Py_ssize_t lines, columns;
    if (!PyArg_ParseTuple(arguments, "OOnn", &index_object, &out_object, &lines, &columns)) return NULL;
    if (!get_array(index_object, &index, 2, 0, 0, "index")) return NULL;
    if (!get_array(out_object, &out, 3, 2, 1, "out")) goto release_index;
    Py_ssize_t height = index.shape[0], width = index.shape[1];
    int fits = lines > 0 && columns > 0 && out.shape[2] < 65536 && PyBuffer_IsContiguous(&out, 'C');
    if (!fits || out.shape[0] != parts_of(height, lines) || out.shape[1] != parts_of(width, columns)) {
        PyErr_SetString(PyExc_ValueError, "out: expected the counts of each cell without gaps");
        goto release_out;
    }
    if (!are_apart(&out, &index)) goto release_out;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t y = 0; y < height && out.len; y++) {
        uint16_t *cells = (uint16_t *)out.buf + y / lines * out.shape[1] * out.shape[2];
        const uint8_t *line = (const uint8_t *)index.buf + y * index.strides[0];
        (index.itemsize == 1 ? count_bytes : count_words)(cells, line, width, columns, (unsigned)out.shape[2]);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_index:
    PyBuffer_Release(&index);
    return result;
}

/* The weights are below 2^24 and counts below 2^16, so the sums of 2^24 cells fit. */
static PyObject *largest(PyObject *module, PyObject *arguments) {
    PyObject *objects[4], *result = NULL;
    Py_buffer views[4];
    static const char *const names[] = {"cells", "counts", "ends", "weights"};
    static const Py_ssize_t sizes[] = {4, 2, 8, 4};
    unsigned long long first;
    int taken = 0;
    if (!PyArg_ParseTuple(arguments, "OOOOK", &objects[0], &objects[1], &objects[2], &objects[3], &first)) return NULL;
    for (; taken < 4; taken++)
        if (!get_array(objects[taken], &views[taken], 1, sizes[taken], 0, names[taken])) goto release;
    const uint32_t *cells = views[0].buf, *weights = views[3].buf;
    const uint16_t *counts = views[1].buf;
    const uint64_t *ends = views[2].buf;
    uint64_t many = (uint64_t)views[0].shape[0], grid = (uint64_t)views[3].shape[0], most = 0, total = 0, at = 0;
    if (!grid || (uint64_t)views[1].shape[0] != many) {
        PyErr_SetString(PyExc_ValueError, "expected a count for each cell, and weights");
        goto release;
    }
    for (Py_ssize_t pair = 0; pair < views[2].shape[0]; pair++) {
        uint64_t end = ends[pair] - first, sum = 0;
        for (; at < end && at < many; at++) sum += (uint64_t)counts[at] * weights[cells[at] < grid ? cells[at] : grid - 1];
        total += sum;
        if (sum > most) most = sum;
    }
    result = Py_BuildValue("KK", (unsigned long long)most, (unsigned long long)total);
release:
    while (taken--) PyBuffer_Release(&views[taken]);
    return result;
}

static PyMethodDef functions[] = {
    {"largest", largest, METH_VARARGS,
     "largest(cells, counts, ends, weights, first): the largest of the sums of weighted counts up to each end, and their total."},
    {"count", count, METH_VARARGS,
     "count(index, out, lines, columns): add the pixels of a (H, W) index of 1 or 2 bytes to the counts (cells down, cells across, classes)."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(cells_kernel, "The pixels of each class in each cell of a label.", functions)
