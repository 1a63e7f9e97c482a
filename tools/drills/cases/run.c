/* The module `cases`: run(function, name, first, count, seconds) makes random calls and checks what they did.

Case n is the same in every run: its dice begin with n. Each call gets memoryviews of exact memory. Afterwards the memory of
each array must be what the case expects, gaps and inputs included, and no view may still be held. */
#include "cases.h"

#include <time.h>

static const struct { const char *name; CaseFunction *function; } known[] = {
    {"expand", onehot}, {"gather", gather}, {"copy", window}, {"split", planes}, {"area_mean", area},
    {"unfilter", unfilter}, {"numbers", numbers}, {"colours", colours}, {"sample", sample},
};

uint8_t *exact(Case *this, size_t size, size_t alignment, uint8_t **first) {
    size_t lead = (size_t)roll(this, 64) / alignment * alignment;
    uint8_t *memory = malloc(lead + size);
    if (!memory) abort();
    memset(memory, UNTOUCHED, lead + size);
    *first = memory + lead;
    return memory;
}

Array *add_array(Case *this, int axes, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, int itemsize, int writable) {
    Array *array = this->arrays + this->count++;
    Py_ssize_t gap = roll(this, 2) ? roll(this, 4) * itemsize : 0, line = width * itemsize + gap;
    Py_ssize_t plane = height * line + (axes > 2 && roll(this, 4) == 0 ? roll(this, 9) * itemsize : 0);
    int empty = !planes || !height || !width;
    size_t size = empty ? 0 : (size_t)((planes - 1) * plane + (height - 1) * line + width * itemsize);
    *array = (Array){axes, itemsize, writable, itemsize == 1 ? "B" : itemsize == 2 ? "H" : "q",
                     {planes, height, width}, {plane, line, itemsize}, NULL, NULL, NULL, 0};
    array->memory = exact(this, size, (size_t)itemsize, &array->first);
    array->size = size + (size_t)(array->first - array->memory);
    if (!writable)
        for (size_t i = 0; i < size; i += 8) {
            uint64_t bytes = (uint64_t)roll(this, INT64_MAX) << 1;
            memcpy(array->first + i, &bytes, size - i < 8 ? size - i : 8);
        }
    array->expected = malloc(array->size + 1);
    if (!array->expected) abort();
    memcpy(array->expected, array->memory, array->size);
    return array;
}

Array *add_row(Case *this, Py_ssize_t length, int itemsize, int writable) {
    return add_array(this, 1, 1, 1, length, itemsize, writable);
}

/* Inputs are to stay as they are, so what is put into one is expected there, too. */
static void expect_now(Array *array) { memcpy(array->expected, array->memory, array->size); }

void put_number(Array *row, Py_ssize_t index, int64_t number) { memcpy(at(row, 0, 0, index), &number, 8); }

int64_t number_of(const Array *row, Py_ssize_t index) {
    int64_t number;
    memcpy(&number, at(row, 0, 0, index), 8);
    return number;
}

void fill_with_runs(Case *this, Array *lines) {
    int most = roll(this, 8) ? 1 + (int)roll(this, 12) : 256;
    Py_ssize_t longest = 1 + roll(this, 30);
    for (Py_ssize_t y = 0; y < lines->shape[1]; y++)
        for (Py_ssize_t x = 0; x < lines->shape[2];) {
            uint8_t number = (uint8_t)(roll(this, most) * 97);
            for (Py_ssize_t end = x + 1 + roll(this, longest); x < end && x < lines->shape[2]; x++) *at(lines, 0, y, x) = number;
        }
}

static PyObject *view_of(const Array *array) {
    int skipped = 3 - array->axes;
    Py_buffer view = {.buf = array->first, .itemsize = array->itemsize, .readonly = !array->writable, .ndim = array->axes,
                      .format = (char *)array->format, .shape = (Py_ssize_t *)array->shape + skipped,
                      .strides = (Py_ssize_t *)array->strides + skipped, .len = array->itemsize};
    for (int axis = skipped; axis < 3; axis++) view.len = (Py_ssize_t)((size_t)view.len * (size_t)array->shape[axis]);
    return PyMemoryView_FromBuffer(&view);
}

/* Return the first argument of `gather`: (file, starts, targets) of each file. */
static PyObject *pieces_of(const Case *this, PyObject *const *views) {
    PyObject *pieces = PyList_New(0);
    for (int file = 0; file < this->files; file++) {
        PyObject *starts = PyList_New(0), *targets = PyList_New(0);
        for (int n = 0; n < this->rows; n++) {
            if (this->row[n].file != file) continue;
            PyObject *start = PyLong_FromLongLong(this->row[n].start), *target = PyLong_FromLongLong(this->row[n].target);
            PyList_Append(starts, start), PyList_Append(targets, target);
            Py_DECREF(start), Py_DECREF(target);
        }
        PyObject *piece = Py_BuildValue("(ONN)", views[file], starts, targets);
        PyList_Append(pieces, piece);
        Py_XDECREF(piece);
    }
    return pieces;
}

/* Make the call. Return what is wrong with it; NULL if nothing is. */
static const char *call(PyObject *function, Case *this) {
    static const char *const refusals[] = {"ValueError", "BufferError", "MemoryError", "TypeError"};
    PyObject *views[MOST_ARRAYS], *arguments = PyList_New(0);
    const char *wrong = NULL;
    for (int i = 0; i < this->count; i++) views[i] = view_of(this->arrays + i);
    if (this->files >= 0) {
        PyObject *pieces = pieces_of(this, views);
        PyList_Append(arguments, pieces), PyList_Append(arguments, views[this->files]);
        Py_DECREF(pieces);
    } else for (int i = 0; i < this->count; i++) PyList_Append(arguments, views[i]);
    for (int i = 0; i < this->more; i++) {
        PyObject *number = PyLong_FromLong(this->numbers[i]);
        PyList_Append(arguments, number);
        Py_DECREF(number);
    }
    PyObject *list = arguments;
    arguments = PyList_AsTuple(list);
    Py_DECREF(list);
    if (!arguments || PyErr_Occurred()) return "no memory for the call";
    PyObject *result = PyObject_Call(function, arguments, NULL);
    int short_of_memory = !result && PyErr_ExceptionMatches(PyExc_MemoryError), held = 0;
    if (!result) {
        const char *name = ((PyTypeObject *)PyErr_Occurred())->tp_name;
        for (int i = 0; i < 4; i++) held += !strcmp(name, refusals[i]);
        if (!held) wrong = "raised another exception";
        else if (!this->refused && !this->unsure && !short_of_memory) wrong = "refused a correct call";
        PyErr_Clear();
    } else if (this->refused) wrong = "accepted a wrong call";
    else if (!this->unsure && this->result != (result == Py_None ? -2 : PyLong_AsLong(result))) wrong = "returned another result";
    for (int i = 0; i < this->count; i++) {
        const Array *array = this->arrays + i;
        PyObject *released = PyObject_CallMethod(views[i], "release", NULL);
        if (!released) wrong = "still holds a buffer", PyErr_Clear();
        Py_XDECREF(released);
        Py_DECREF(views[i]);
        int known = !array->writable || (!this->unsure && !this->partial && !short_of_memory);
        if (known && memcmp(array->memory, array->expected, array->size)) wrong = "wrote other bytes";
    }
    Py_XDECREF(result);
    Py_DECREF(arguments);
    return wrong;
}

static PyObject *run(PyObject *module, PyObject *arguments) {
    PyObject *function;
    const char *name;
    long long first, count, done = 0;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "OsLLd", &function, &name, &first, &count, &seconds)) return NULL;
    CaseFunction *make = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) make = known[i].function;
    if (!make) return PyErr_Format(PyExc_ValueError, "no cases of %s", name);
    for (time_t end = time(NULL) + (time_t)seconds; done < count && time(NULL) <= end; done++) {
        Case this = {.dice = (uint64_t)(first + done) * 0xD1342543DE82EF95u, .result = -2, .files = -1};
        make(&this);
        for (int i = 0; i < this.count; i++)
            if (!this.arrays[i].writable) expect_now(this.arrays + i);
        if (roll(&this, 6) == 0) spoil(&this);
        for (int i = 0; this.refused && i < this.count; i++) expect_now(this.arrays + i);
        const char *wrong = call(function, &this);
        for (int i = 0; i < this.count; i++) free(this.arrays[i].memory), free(this.arrays[i].expected);
        if (wrong) return PyErr_Format(PyExc_AssertionError, "%s: case %lld %s", name, first + done, wrong);
        if (done % 1024 == 0 && PyErr_CheckSignals()) return NULL;
    }
    return PyLong_FromLongLong(done);
}

static PyMethodDef functions[] = {
    {"run", run, METH_VARARGS, "run(function, name, first, count, seconds): make calls; return how many."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cases", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_cases(void) { return PyModule_Create(&definition); }
