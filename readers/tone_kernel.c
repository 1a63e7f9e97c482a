/* Read windows of pictures of bytes with another tone: colours changed, normalised, as bytes or as numbers of floating point.

readers/tone.py has the same rule in NumPy. */
#include "tone_arrays.h"
#include "windows_in_files.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a batch from which on it is stored past the caches */
#endif

#define AHEAD 3 /* lines */
#define CACHE_LINE 64

static void tone_window(const Tone *tone, const Window *window, const Py_buffer *out) {
    const Py_ssize_t height = out->shape[2], width = out->shape[3], *strides = out->strides, bytes = width * out->itemsize;
    const int past_caches = tone->avx2 && out->len >= LARGE;
    for (Py_ssize_t y = 0; y < height; y++) {
        uint8_t *to = window->to + (window->flip & LINES ? height - 1 - y : y) * strides[2];
        const int fills_lines = (((uintptr_t)to | (uintptr_t)strides[1] | (uintptr_t)bytes) & (CACHE_LINE - 1)) == 0;
        const Line line = {window->from + y * window->from_line, window->from_plane, to, strides[1], width,
                           y + AHEAD < height ? AHEAD * window->from_line : 0, window->flip & COLUMNS, past_caches && fills_lines};
        tone_line(tone, &line);
    }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

static PyObject *tone_all(PyObject *module, PyObject *arguments) {
    PyObject *pictures, *out_object, *weights, *lines, *result = NULL;
    Py_buffer out;
    Arrays arrays;
    Windows all;
    int kind;
    if (!PyArg_ParseTuple(arguments, "O!OOOi", &PyList_Type, &pictures, &out_object, &weights, &lines, &kind) || !is_kind(kind))
        return NULL;
    if (!get_array(out_object, &out, 4, ITEMS[kind], 1, "out")) return NULL;
    if (!get_arrays(&arrays, weights, lines, out.shape[0], out.shape[1], &out)) goto release_out;
    if (read_windows(&all, pictures, &out, 1, 0)) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t n = 0; out.len && n < all.count; n++) {
            const Tone tone = tone_of(&arrays, all.windows[n].target, kind, out.shape[1]);
            tone_window(&tone, &all.windows[n], &out);
        }
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_windows(&all);
    release_arrays(&arrays);
release_out:
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"tone_all", tone_all, METH_VARARGS,
     "tone_all(pictures, out, weights, lines, kind): read a window of each picture, (data, (start, height, width, target, top, left, "
     "flip)), into out[target]: bytes, or float32, float16 and bfloat16 (kinds 0 to 3)."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(tone_kernel, "Windows of pictures with another tone.", functions)
