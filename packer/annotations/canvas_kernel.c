/* Lay the mask of an object on a canvas, and see which objects the canvas shows.

A mask and a canvas have a byte for each pixel, or two in a canvas of more than 255 objects. A canvas has long runs, so eight
pixels that equal the eight before them are not looked at again. */
#include "kernel.h"

enum { NUMBERS = 256 };

static int same_size(const Py_buffer *a, const Py_buffer *b) {
    if (a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1]) return 1;
    PyErr_SetString(PyExc_ValueError, "the second array is not as large as the first");
    return 0;
}

static const char *line_of(const Py_buffer *array, Py_ssize_t line) { return (const char *)array->buf + line * array->strides[0]; }

static int64_t lay_line(const uint8_t *inside, uint8_t *canvas, Py_ssize_t width, uint8_t number) {
    int64_t count = 0;
    for (Py_ssize_t from = 0; from < width; from += 255) { /* so many fit into a sum of 8 bits */
        Py_ssize_t end = width - from < 255 ? width : from + 255;
        uint8_t found = 0;
        for (Py_ssize_t x = from; x < end; x++) {
            uint8_t is_inside = inside[x] != 0, mask = (uint8_t)-is_inside;
            canvas[x] = (uint8_t)((canvas[x] & ~mask) | (number & mask));
            found = (uint8_t)(found + is_inside);
        }
        count += found;
    }
    return count;
}

static int64_t lay_wide_line(const uint8_t *inside, uint16_t *canvas, Py_ssize_t width, uint16_t number) {
    int64_t count = 0;
    for (Py_ssize_t x = 0; x < width; x++) {
        canvas[x] = inside[x] ? number : canvas[x];
        count += inside[x] != 0;
    }
    return count;
}

static PyObject *lay(PyObject *module, PyObject *arguments) {
    PyObject *objects[2], *result = NULL;
    Py_buffer inside, canvas;
    int number;
    if (!PyArg_ParseTuple(arguments, "OOi", objects, objects + 1, &number)) return NULL;
    if (!get_array(objects[0], &inside, 2, 1, 0, "inside")) return NULL;
    if (!get_array(objects[1], &canvas, 2, 0, 1, "canvas")) {
        PyBuffer_Release(&inside);
        return NULL;
    }
    if (number < 0 || number >= (canvas.itemsize == 1 ? 1 << 8 : 1 << 16)) {
        PyErr_SetString(PyExc_ValueError, "number: does not fit into the canvas");
    } else if (same_size(&inside, &canvas) && are_apart(&canvas, &inside)) {
        int64_t count = 0;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t line = 0; line < canvas.shape[0] && canvas.len; line++) {
            const uint8_t *from = (const uint8_t *)line_of(&inside, line);
            char *to = (char *)canvas.buf + line * canvas.strides[0];
            if (canvas.itemsize == 1) count += lay_line(from, (uint8_t *)to, canvas.shape[1], (uint8_t)number);
            else count += lay_wide_line(from, (uint16_t *)to, canvas.shape[1], (uint16_t)number);
        }
        Py_END_ALLOW_THREADS
        result = PyLong_FromLongLong(count);
    }
    PyBuffer_Release(&canvas);
    PyBuffer_Release(&inside);
    return result;
}

static void mark_line(const uint8_t *line, Py_ssize_t width, uint8_t *occurs) {
    Py_ssize_t x = 0;
    uint64_t word, before = 0;
    for (; x + 8 <= width; x += 8) {
        memcpy(&word, line + x, 8);
        if (word == before && x) continue;
        for (int k = 0; k < 8; k++) occurs[word >> 8 * k & 255] = 1;
        before = word;
    }
    for (; x < width; x++) occurs[line[x]] = 1;
}

static void translate_line(const uint8_t *line, Py_ssize_t width, const uint8_t *table, uint8_t *out) {
    Py_ssize_t x = 0;
    uint64_t word, before = 0;
    for (; x + 8 <= width; x += 8) {
        memcpy(&word, line + x, 8);
        if (word == before && x) memcpy(out + x, out + x - 8, 8);
        else
            for (int k = 0; k < 8; k++) out[x + k] = table[line[x + k]];
        before = word;
    }
    for (; x < width; x++) out[x] = table[line[x]];
}

static PyObject *marked(PyObject *module, PyObject *arguments) {
    PyObject *objects[2], *result = NULL;
    Py_buffer canvas, occurs;
    if (!PyArg_ParseTuple(arguments, "OO", objects, objects + 1)) return NULL;
    if (!get_array(objects[0], &canvas, 2, 1, 0, "canvas")) return NULL;
    if (!get_array(objects[1], &occurs, 1, 1, 1, "occurs")) {
        PyBuffer_Release(&canvas);
        return NULL;
    }
    if (occurs.shape[0] != NUMBERS) PyErr_SetString(PyExc_ValueError, "occurs: expected 256 numbers");
    else if (are_apart(&occurs, &canvas)) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t line = 0; line < canvas.shape[0] && canvas.len; line++)
            mark_line((const uint8_t *)line_of(&canvas, line), canvas.shape[1], occurs.buf);
        Py_END_ALLOW_THREADS
        result = Py_None;
        Py_INCREF(result);
    }
    PyBuffer_Release(&occurs);
    PyBuffer_Release(&canvas);
    return result;
}

static PyObject *translate(PyObject *module, PyObject *arguments) {
    PyObject *objects[2], *result = NULL;
    Py_buffer canvas, out;
    const char *table;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "Oy#O", objects, &table, &length, objects + 1)) return NULL;
    if (!get_array(objects[0], &canvas, 2, 1, 0, "canvas")) return NULL;
    if (!get_array(objects[1], &out, 2, 1, 1, "out")) {
        PyBuffer_Release(&canvas);
        return NULL;
    }
    if (length != NUMBERS) PyErr_SetString(PyExc_ValueError, "table: expected 256 numbers");
    else if (same_size(&canvas, &out) && are_apart(&out, &canvas)) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t line = 0; line < canvas.shape[0] && canvas.len; line++)
            translate_line((const uint8_t *)line_of(&canvas, line), canvas.shape[1], (const uint8_t *)table,
                           (uint8_t *)out.buf + line * out.strides[0]);
        Py_END_ALLOW_THREADS
        result = Py_None;
        Py_INCREF(result);
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&canvas);
    return result;
}

static PyMethodDef functions[] = {
    {"lay", lay, METH_VARARGS, "lay(inside, canvas, number): write a number where `inside` is not 0. Return how many pixels these are."},
    {"marked", marked, METH_VARARGS, "marked(canvas, occurs): set to 1 each of 256 numbers that occurs in the canvas."},
    {"translate", translate, METH_VARARGS, "translate(canvas, table, out): write the entry of the table for each number of the canvas."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(canvas_kernel, "Lay masks on a canvas, and see what it shows.", functions)
