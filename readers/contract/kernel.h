/* What all kernels share: checked buffers, and the instructions that this CPU has.

A kernel is a C module of one idea. Python code passes buffers, and the kernel checks each of them here before it touches
its memory: dimensions, size of an item, room for what is written. It releases the GIL while it works. It gives the same
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

/* Get a buffer of `ndim` axes whose items have `itemsize` bytes, or 1 or 2 bytes if that is 0. The items of the last axis
   follow each other; other axes may have gaps, but do not run backwards. Return 0 with an exception set if it is another. */
static int get_array(PyObject *object, Py_buffer *view, int ndim, Py_ssize_t itemsize, int writable, const char *name) {
    if (PyObject_GetBuffer(object, view, writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) < 0) return 0;
    int fits = view->ndim == ndim && (itemsize ? view->itemsize == itemsize : view->itemsize == 1 || view->itemsize == 2);
    for (int axis = 0; fits && axis < ndim; axis++)
        fits = axis + 1 < ndim ? view->strides[axis] >= 0 : view->strides[axis] == view->itemsize || view->shape[axis] < 2;
    if (fits) return 1;
    PyErr_Format(PyExc_ValueError, "%s: expected %d axes, the last without gaps, found %d of %zd bytes", name, ndim,
                 view->ndim, view->itemsize);
    PyBuffer_Release(view);
    return 0;
}

/* Add the number `avx2`, which is 1 if the module uses these instructions. */
static int add_features(PyObject *module) { return PyModule_AddIntConstant(module, "avx2", has_avx2()); }

/* Define the module `name` with these functions. */
#define KERNEL_MODULE(name, text, functions)                                                                                \
    static PyModuleDef_Slot name##_slots[] = {{Py_mod_exec, (void *)add_features}, {0, NULL}};                             \
    static struct PyModuleDef name##_module = {PyModuleDef_HEAD_INIT, #name, text, 0, functions, name##_slots, 0, 0, 0};    \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&name##_module); }

#endif
