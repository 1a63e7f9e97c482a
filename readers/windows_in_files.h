/* Windows of pictures that lie in files: a list of (data, (start, height, width, target, top, left, flip)), for a batch `out` of
four axes. Each is checked before any is used. Bit 1 of `flip` turns the columns around, 2 the lines, 4 the planes (the slices
of a volume). Two numbers more are the height and the width that the picture is scaled to: the window lies in that. */
#ifndef SEGPACK_WINDOWS_IN_FILES_H
#define SEGPACK_WINDOWS_IN_FILES_H

#include "kernel.h"

enum { COLUMNS = 1, LINES = 2, PLANES = 4 };

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_plane, from_line;
    uint8_t *to;
    Py_ssize_t target; /* its number in the batch */
    int flip;
    const uint8_t *picture;
    long long height, width, top, left, scaled_height, scaled_width;
} Window;

typedef struct {
    Py_ssize_t count, held;
    Py_buffer *views; /* of the files */
    Window *windows;
} Windows;

/* Fill in a window of a picture that lies in a file. Return 0 with an exception set if any of it lies outside. */
static int find_window(Window *window, const Py_buffer *data, PyObject *arguments, const Py_buffer *out, Py_ssize_t item) {
    long long start, height, width, target, tall = 0, wide = 0;
    if (!PyArg_ParseTuple(arguments, "LLLLLLi|LL", &start, &height, &width, &target, &window->top, &window->left, &window->flip, &tall,
                          &wide)) return 0;
    const int is_scaled = PyTuple_Size(arguments) > 7;
    const Py_ssize_t *shape = out->shape, pixels = data->shape[0] / item;
    window->height = height, window->scaled_height = is_scaled ? tall : height;
    window->width = width, window->scaled_width = is_scaled ? wide : width;
    if (height < 1 || width < 1 || (is_scaled && (tall < 1 || wide < 1 || (tall | wide | height | width) > INT32_MAX)) ||
        width > pixels || height > pixels / width || shape[1] > pixels / width / height || start < 0 ||
        start > data->shape[0] - shape[1] * height * width * item || target < 0 || target >= shape[0] || window->top < 0 ||
        window->top > window->scaled_height - shape[2] || window->left < 0 || window->left > window->scaled_width - shape[3]) {
        PyErr_SetString(PyExc_ValueError, "copy_all: a window lies outside of its picture, of the file or of the batch");
        return 0;
    }
    window->from_line = width * item;
    window->from_plane = height * window->from_line;
    window->picture = (const uint8_t *)data->buf + start;
    window->from = is_scaled ? NULL : window->picture + window->top * window->from_line + window->left * item;
    window->target = (Py_ssize_t)target;
    window->to = (uint8_t *)out->buf + target * out->strides[0];
    return 1;
}

static void release_windows(Windows *all) {
    while (all->held > 0) PyBuffer_Release(&all->views[--all->held]);
    free(all->views);
    free(all->windows);
}

/* Read the windows of pictures whose pixels have `item` bytes. Return 0 with an exception set if one of them lies outside of its
   file or of `out`; what is held is released by the caller in any case. */
static int read_windows(Windows *all, PyObject *pictures, const Py_buffer *out, Py_ssize_t item, int are_scaled) {
    PyObject *data, *numbers;
    *all = (Windows){.count = PyList_Size(pictures)};
    all->views = calloc((size_t)all->count + 1, sizeof(Py_buffer));
    all->windows = calloc((size_t)all->count + 1, sizeof(Window));
    if (!all->views || !all->windows) {
        PyErr_NoMemory();
        return 0;
    }
    while (all->held < all->count) {
        Window *window = &all->windows[all->held];
        PyObject *picture = PyList_GetItem(pictures, all->held);
        if (!picture || !PyArg_ParseTuple(picture, "OO!", &data, &PyTuple_Type, &numbers)) return 0;
        Py_buffer *view = &all->views[all->held];
        if (!get_array(data, view, 1, 1, 0, "data")) return 0;
        all->held++;
        if (!are_apart(out, view) || !find_window(window, view, numbers, out, item)) return 0;
        if ((window->from == NULL) != are_scaled) {
            PyErr_SetString(PyExc_ValueError, are_scaled ? "expected windows of scaled pictures" : "expected windows as they are");
            return 0;
        }
    }
    return 1;
}

#endif
