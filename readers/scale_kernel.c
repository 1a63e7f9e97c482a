/* Scale windows of pictures: bytes by the two nearest pixels of each side, labels by the nearest one (scale_taps.h).

readers/scaled.py has the same rule in NumPy. */
#include "scale_picture.h"
#include "tone_arrays.h"
#include "windows_in_files.h"

/* Read the sides of the window that `all` makes, and find its pixels. Return 0 with an exception set if they are not there. */
static int read_sides(Scaling *all, PyObject *down, PyObject *across, int flip, int is_nearest) {
    Side sides[2];
    return read_side(down, sides) && read_side(across, sides + 1) && are_apart(&all->out, &all->pixels) &&
           are_found(find_all(all, sides, sides + 1, flip, is_nearest));
}

static PyObject *linear(PyObject *module, PyObject *arguments) {
    PyObject *pixels, *out, *down, *across, *weights, *lines, *result = NULL;
    Scaling all = {.avx2 = has_avx2()};
    Arrays arrays;
    int flip, kind;
    if (!PyArg_ParseTuple(arguments, "OOO!O!iOOi", &pixels, &out, &PyTuple_Type, &down, &PyTuple_Type, &across, &flip, &weights, &lines,
                          &kind) || !is_kind(kind)) return NULL;
    if (!get_array(pixels, &all.pixels, 3, 1, 0, "pixels")) return NULL;
    if (!get_array(out, &all.out, 3, ITEMS[kind], 1, "out")) goto release_pixels;
    if (!get_arrays(&arrays, weights, lines, 1, all.out.shape[0], &all.out)) goto release_out;
    const Tone tone = tone_of(&arrays, 0, kind, all.out.shape[0]);
    if (read_sides(&all, down, across, flip, 0)) {
        Py_BEGIN_ALLOW_THREADS
        if (all.out.len) linear_all(&all, kind != BYTES || tone.weights ? &tone : NULL);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_all(&all);
    release_arrays(&arrays);
release_out:
    PyBuffer_Release(&all.out);
release_pixels:
    PyBuffer_Release(&all.pixels);
    return result;
}

static PyObject *nearest(PyObject *module, PyObject *arguments) {
    PyObject *pixels, *out, *down, *across, *result = NULL;
    Scaling all = {.avx2 = has_avx2()};
    int flip;
    if (!PyArg_ParseTuple(arguments, "OOO!O!i", &pixels, &out, &PyTuple_Type, &down, &PyTuple_Type, &across, &flip)) return NULL;
    if (!get_array(pixels, &all.pixels, 3, 0, 0, "pixels")) return NULL;
    if (!get_array(out, &all.out, 3, all.pixels.itemsize, 1, "out")) goto release_pixels;
    if (read_sides(&all, down, across, flip, 1)) {
        Py_BEGIN_ALLOW_THREADS
        if (all.out.len) nearest_all(&all);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_all(&all);
    PyBuffer_Release(&all.out);
release_pixels:
    PyBuffer_Release(&all.pixels);
    return result;
}

/* Scale a window of a picture in a file into its row of the batch `out`. It needs no GIL. */
static Found scale_in_file(const Window *window, const Py_buffer *out, int is_nearest, const Tone *tone, int avx2) {
    const Side down = {window->height, window->scaled_height, window->top, 0}, across = {window->width, window->scaled_width, window->left, 0};
    Py_ssize_t shape[] = {out->shape[1], (Py_ssize_t)window->height, (Py_ssize_t)window->width};
    Py_ssize_t strides[] = {window->from_plane, window->from_line, 1};
    Scaling all = {.avx2 = avx2};
    all.pixels = (Py_buffer){.buf = (void *)window->picture, .shape = shape, .strides = strides, .itemsize = 1};
    all.out = (Py_buffer){.buf = window->to, .shape = out->shape + 1, .strides = out->strides + 1, .itemsize = out->itemsize};
    all.out.len = out->len / out->shape[0];
    const Found found = find_all(&all, &down, &across, window->flip, is_nearest);
    if (found == FOUND && is_nearest) nearest_all(&all);
    else if (found == FOUND) linear_all(&all, tone);
    release_all(&all);
    return found;
}

/* One call for a batch, as each waits for the GIL. */
static PyObject *scale_all(PyObject *module, PyObject *arguments) {
    PyObject *pictures, *out_object, *weights, *lines, *result = NULL;
    Py_buffer out;
    Arrays arrays;
    Windows all;
    int is_nearest, kind;
    Found found = FOUND;
    if (!PyArg_ParseTuple(arguments, "O!OpOOi", &PyList_Type, &pictures, &out_object, &is_nearest, &weights, &lines, &kind) ||
        !is_kind(kind)) return NULL;
    if (!get_array(out_object, &out, 4, ITEMS[kind], 1, "out")) return NULL;
    if (!get_arrays(&arrays, weights, lines, out.shape[0], out.shape[1], &out)) goto release_out;
    if (read_windows(&all, pictures, &out, 1, 1)) {
        const int avx2 = has_avx2(), has_tone = kind != BYTES || arrays.has_weights;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t n = 0; found == FOUND && out.len && n < all.count; n++) {
            const Tone tone = tone_of(&arrays, all.windows[n].target, kind, out.shape[1]);
            found = scale_in_file(&all.windows[n], &out, is_nearest, has_tone ? &tone : NULL, avx2);
        }
        Py_END_ALLOW_THREADS
        if (are_found(found)) result = Py_NewRef(Py_None);
    }
    release_windows(&all);
    release_arrays(&arrays);
release_out:
    PyBuffer_Release(&out);
    return result;
}

static PyMethodDef functions[] = {
    {"linear", linear, METH_VARARGS,
     "linear(pixels, out, down, across, flip, weights, lines, kind): scale (C, H, W) bytes into `out`, with a tone as in tone_kernel. A "
     "side is (source, scaled, start, offset); bit 1 of flip turns columns around, 2 lines."},
    {"nearest", nearest, METH_VARARGS, "nearest(pixels, out, down, across, flip): take the nearest of (C, H, W) pixels of 1 or 2 bytes."},
    {"scale_all", scale_all, METH_VARARGS,
     "scale_all(pictures, out, is_nearest, weights, lines, kind): scale the bytes of a window of each picture, (data, (start, height, "
     "width, target, top, left, flip, scaled height, scaled width)), into out[target]."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(scale_kernel, "Windows of pictures, scaled.", functions)
