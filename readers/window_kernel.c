/* Copy windows of pictures, line by line, as they are or mirrored.

The lines of a window are far apart in the picture, so the CPU does not foresee the next ones: they are requested while a
line is copied. Lines of a large window are stored past the caches (readers/contract/past_caches.h). A mirrored line is read
from its end, 32 bytes at a time, and turned in a register. */
#include "window_lines.h"
#include "windows_in_files.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

#define AHEAD 3 /* lines: one was measured to be too few, with none it takes a tenth longer */

/* Copy a window into planes, lines and pixels as those of `out`, whose last three axes they are. */
static void copy_window(const Window *window, const Py_buffer *out, int past_caches) {
    const Py_ssize_t *shape = out->shape + out->ndim - 3, *strides = out->strides + out->ndim - 3;
    const Py_ssize_t height = shape[1], width = shape[2], item = out->itemsize;
    const int mirrors = window->flip & COLUMNS;
    for (Py_ssize_t plane = 0; plane < shape[0]; plane++)
        for (Py_ssize_t y = 0; y < height; y++) {
            const Py_ssize_t to_plane = window->flip & PLANES ? shape[0] - 1 - plane : plane;
            uint8_t *to = window->to + to_plane * strides[0] + (window->flip & LINES ? height - 1 - y : y) * strides[1];
            const uint8_t *from = window->from + plane * window->from_plane + y * window->from_line;
#ifdef X86
            if (past_caches && (item <= 2 || !mirrors)) {
                const Py_ssize_t ahead = y + AHEAD < height ? AHEAD * window->from_line : 0;
                if (mirrors) mirror_line(to, from, width * item, item, ahead);
                else copy_line(to, from, width * item, ahead);
                continue;
            }
#endif
            if (mirrors) mirror_plain(to, from, width, item);
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
    if (!PyArg_ParseTuple(arguments, "OOi", &pixels_object, &out_object, &flip)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 0, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, 0, 1, "out")) goto release_pixels;
    if (memcmp(out.shape, pixels.shape, 3 * sizeof(Py_ssize_t)) || out.itemsize != pixels.itemsize) {
        PyErr_SetString(PyExc_ValueError, "out: the window is not as large as the pixels");
        goto release_out;
    }
    if (!are_apart(&out, &pixels)) goto release_out;
    const Window window = {pixels.buf, pixels.strides[0], pixels.strides[1], out.buf, .flip = flip};
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

/* One call for a batch, as each waits for the GIL. All is checked before anything is written. */
static PyObject *copy_all(PyObject *module, PyObject *arguments) {
    PyObject *pictures, *out_object, *result = NULL;
    Py_buffer out;
    Windows all;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyList_Type, &pictures, &out_object)) return NULL;
    if (!get_array(out_object, &out, 4, 0, 1, "out")) return NULL;
    if (read_windows(&all, pictures, &out, out.itemsize, 0)) {
        const int past_caches = has_avx2() && out.len >= LARGE;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t n = 0; out.len && n < all.count; n++) copy_window(&all.windows[n], &out, past_caches);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_windows(&all);
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"copy", copy, METH_VARARGS, "copy(pixels, out, flip): copy (C, H, W) pixels of 1 or 2 bytes into `out`; bits of `flip` mirror axes."},
    {"copy_all", copy_all, METH_VARARGS,
     "copy_all(pictures, out): copy a window of each picture, (data, (start, height, width, target, top, left, flip)), into out[target]."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(window_kernel, "Windows of pictures, as they are or mirrored.", functions)
