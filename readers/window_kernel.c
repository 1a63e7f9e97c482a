/* Copy windows of pictures, line by line, as they are or mirrored.

The lines of a window are far apart in the picture, so the CPU does not foresee the next ones: they are requested while a
line is copied. Lines of a large window are stored past the caches (readers/contract/past_caches.h). A mirrored line is read
from its end, 32 pixels at a time, and turned in a register. */
#include "window_lines.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

#define AHEAD 3 /* lines: one was measured to be too few, with none it takes a tenth longer */

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_plane, from_line;
    uint8_t *to;
    int flip;
} Window;

/* Copy a window into planes, lines and pixels as those of `out`, whose last three axes they are. */
static void copy_window(const Window *window, const Py_buffer *out, int past_caches) {
    const Py_ssize_t *shape = out->shape + out->ndim - 3, *strides = out->strides + out->ndim - 3;
    const Py_ssize_t height = shape[1], width = shape[2], item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < shape[0]; plane++)
        for (Py_ssize_t y = 0; y < height; y++) {
            uint8_t *to = window->to + plane * strides[0] + y * strides[1];
            const uint8_t *from = window->from + plane * window->from_plane + y * window->from_line;
#ifdef X86
            if (past_caches && (item == 1 || !window->flip)) {
                const Py_ssize_t ahead = y + AHEAD < height ? AHEAD * window->from_line : 0;
                if (window->flip) mirror_line(to, from, width, ahead);
                else copy_line(to, from, width * item, ahead);
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
    const Window window = {pixels.buf, pixels.strides[0], pixels.strides[1], out.buf, flip};
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

static PyMethodDef functions[] = {
    {"copy", copy, METH_VARARGS, "copy(pixels, out, flip): copy (C, H, W) pixels of 1 or 2 bytes into `out`, mirrored if `flip`."},
    {"copy_all", copy_all, METH_VARARGS,
     "copy_all(pictures, out): copy a window of each picture, (data, (start, height, width, target, top, left, flip)), into out[target]."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(window_kernel, "Windows of pictures, as they are or mirrored.", functions)
