/* Copy rows of a mapped file into a batch.

Rows of a large batch are stored past the caches (readers/contract/past_caches.h). Small batches are copied by memcpy: their
reader finds them in the caches.

A batch comes from many files, with a row or two of each. One call copies them all: each call waits for the GIL. */
#include "past_caches.h"

#ifndef LARGE /* a drill has another */
#define LARGE (1 << 20) /* bytes of a batch from which on it is stored past the caches */
#endif

typedef struct {
    const uint8_t *from;
    uint8_t *to;
} Row;

static void copy_rows(const Row *rows, Py_ssize_t count, size_t size, int past_caches) {
    for (; count > 0; rows++, count--) {
#ifdef X86
        if (past_caches) {
            copy_past_caches(rows->to, rows->from, size, 0);
            continue;
        }
#endif
        memcpy(rows->to, rows->from, size);
    }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

/* The number at this index of a list; -1 with an exception set if there is none. */
static int64_t number_at(PyObject *list, Py_ssize_t index) {
    PyObject *item = PyList_GetItem(list, index);
    if (item && PyLong_Check(item)) return PyLong_AsLongLong(item);
    if (item) PyErr_SetString(PyExc_TypeError, "gather: expected lists of plain numbers");
    return -1;
}

/* Note where the rows of one file begin, and where they go. Return 0 with an exception set if one lies outside. */
static int add_rows(Row *rows, Py_ssize_t *count, const Py_buffer *data, PyObject *starts, const Py_buffer *out,
                    PyObject *targets) {
    const Py_ssize_t size = out->shape[1], room = out->shape[0];
    int fits = PyList_Size(starts) == PyList_Size(targets) && PyList_Size(starts) <= room - *count;
    for (Py_ssize_t n = 0; fits && n < PyList_Size(starts); n++) {
        const int64_t start = number_at(starts, n), target = number_at(targets, n);
        if (PyErr_Occurred()) return 0;
        fits = start >= 0 && start <= data->shape[0] - size && target >= 0 && target < room;
        if (fits) rows[(*count)++] = (Row){(const uint8_t *)data->buf + start, (uint8_t *)out->buf + target * out->strides[0]};
    }
    if (!fits) PyErr_SetString(PyExc_ValueError, "gather: a row lies outside of the file or of the batch");
    return fits;
}

static PyObject *gather(PyObject *module, PyObject *arguments) {
    PyObject *pieces, *out_object, *data, *starts, *targets, *result = NULL;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyList_Type, &pieces, &out_object)) return NULL;
    if (!get_array(out_object, &out, 2, 1, 1, "out")) return NULL;
    const Py_ssize_t files = PyList_Size(pieces);
    Py_ssize_t held = 0, count = 0;
    Py_buffer *views = calloc((size_t)files + 1, sizeof(Py_buffer));
    Row *rows = calloc((size_t)out.shape[0] + 1, sizeof(Row));
    if (!views || !rows) {
        PyErr_NoMemory();
        goto release;
    }
    for (; held < files; held++) {
        PyObject *piece = PyList_GetItem(pieces, held);
        if (!piece || !PyArg_ParseTuple(piece, "OO!O!", &data, &PyList_Type, &starts, &PyList_Type, &targets)) goto release;
        if (!get_array(data, &views[held], 1, 1, 0, "data")) goto release;
        if (!are_apart(&out, &views[held]) || !add_rows(rows, &count, &views[held], starts, &out, targets)) {
            held++;
            goto release;
        }
    }
    const int past_caches = has_avx2() && out.shape[1] >= LARGE / (out.shape[0] ? out.shape[0] : 1);
    Py_BEGIN_ALLOW_THREADS
    if (out.len) copy_rows(rows, count, (size_t)out.shape[1], past_caches);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held > 0) PyBuffer_Release(&views[--held]);
    free(views);
    free(rows);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"gather", gather, METH_VARARGS,
     "gather(pieces, out): a piece is (data, starts, targets); copy bytes of `data` from each start into a row of `out`."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(gather_kernel, "Rows of a mapped file into a batch.", functions)
