/* What all kernels share: checked buffers, and the instructions that this CPU has.

A kernel is a C module of one idea. Python code passes buffers, and the kernel checks each of them here before it touches
its memory: dimensions, size and kind of an item, and that what is written overlaps neither itself nor what is read.
Another thread may change what is read, so only indices that no one else can reach lead to an address. It releases the GIL while it works. It gives the same
bytes as the Python code that stands in for it, and as itself on a CPU without AVX2. */
#ifndef SEGPACK_KERNEL_H
#define SEGPACK_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,bmi2")))
#endif

/* Nonzero if the kernels may use AVX2. SEGPACK_KERNELS=plain forbids it. */
static int has_avx2(void) {
#ifdef X86
    const char *chosen = getenv("SEGPACK_KERNELS");
    return !(chosen && strcmp(chosen, "plain") == 0) && __builtin_cpu_supports("avx2");
#else
    return 0;
#endif
}

/* Return whether the items are as this CPU keeps them: in its byte order, and those of 8 bytes aligned integers. */
static int is_native(const Py_buffer *view) {
    const uint16_t one = 1;
    const char *format = view->format ? view->format : "B", other_order = *(const char *)&one ? '>' : '<';
    if (view->itemsize > 1 && (*format == other_order || *format == '!')) return 0;
    return view->itemsize < 8 || (strchr("lq", format[strlen(format) - 1]) && (uintptr_t)view->buf % 8 == 0);
}

/* Get a buffer of `ndim` axes whose items have `itemsize` bytes, or 1 or 2 bytes if that is 0. The items of the last axis
   follow each other. Other axes may have gaps, but do not run backwards, and what is written does not overlap itself.
   Return 0 with an exception set if it is another. */
static int get_array(PyObject *object, Py_buffer *view, int ndim, Py_ssize_t itemsize, int writable, const char *name) {
    if (PyObject_GetBuffer(object, view, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0) return 0;
    int fits = view->ndim == ndim && (itemsize ? view->itemsize == itemsize : view->itemsize == 1 || view->itemsize == 2);
    Py_ssize_t extent = view->itemsize; /* from the first byte of an inner axis to its end */
    for (int axis = ndim - 1; fits && view->len && axis >= 0; axis--) {
        if (view->shape[axis] < 2) continue;
        fits = axis + 1 == ndim ? view->strides[axis] == extent : view->strides[axis] >= (writable ? extent : 0);
        extent += (view->shape[axis] - 1) * view->strides[axis];
    }
    if (fits && is_native(view)) return 1;
    PyErr_Format(PyExc_ValueError, "%s: expected %d axes of native numbers, the last without gaps, found %d of %zd bytes (%s)",
                 name, ndim, view->ndim, view->itemsize, view->format ? view->format : "B");
    PyBuffer_Release(view);
    return 0;
}

/* Return whether two arrays share no memory; if they do, with an exception set. */
static int are_apart(const Py_buffer *written, const Py_buffer *read) {
    const Py_buffer *views[] = {written, read};
    uintptr_t begin[2], end[2];
    for (int i = 0; i < 2; i++) {
        begin[i] = end[i] = (uintptr_t)views[i]->buf;
        if (!views[i]->len) return 1;
        for (int axis = 0; axis < views[i]->ndim; axis++) end[i] += (size_t)((views[i]->shape[axis] - 1) * views[i]->strides[axis]);
        end[i] += (size_t)views[i]->itemsize;
    }
    if (end[0] <= begin[1] || end[1] <= begin[0]) return 1;
    PyErr_SetString(PyExc_ValueError, "an array that is written shares memory with one that is read");
    return 0;
}

/* Add the number `avx2`, which is 1 if the module uses these instructions. */
static int add_features(PyObject *module) { return PyModule_AddIntConstant(module, "avx2", has_avx2()); }

/* A Python without the GIL would turn it on for modules that do not say this. Kernels keep nothing between calls. */
#ifdef Py_GIL_DISABLED
#define NO_GIL {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#else
#define NO_GIL
#endif

/* Define the module `name` with these functions. */
#define KERNEL_MODULE(name, text, functions)                                                                                \
    static PyModuleDef_Slot name##_slots[] = {NO_GIL {Py_mod_exec, (void *)add_features}, {0, NULL}};                      \
    static struct PyModuleDef name##_module = {PyModuleDef_HEAD_INIT, #name, text, 0, functions, name##_slots, 0, 0, 0};    \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&name##_module); }

#endif
