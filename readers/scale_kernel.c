/* Scale windows of pictures: bytes by the two nearest pixels of each side, labels by the nearest one (scale_taps.h).

Two columns are added to numbers of 16 bits, then two of their lines to numbers of 24, and these are rounded once. The sums of
a line are held for the next one. A picture may get another tone on the way. readers/scaled.py has the same rule in NumPy. */
#include "scale_lines.h"
#include "tone_arrays.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

#define AHEAD 2 /* lines: they are requested while a line is added */
#define CACHE_LINE 64

/* Return how many bytes from a line those are that will be read soon. */
static Py_ssize_t ahead_of(const Scaling *all) {
    const int descends = all->down.first[0] > all->down.first[all->out->shape[1] - 1];
    return (descends ? -AHEAD : AHEAD) * all->pixels->strides[1];
}

static int fills_lines(const uint8_t *to, Py_ssize_t bytes) {
    return (((uintptr_t)to | (uintptr_t)bytes) & (CACHE_LINE - 1)) == 0;
}

static void linear_line(const Scaling *all, Py_ssize_t plane, Py_ssize_t y, uint8_t *to, int past_caches) {
    const Py_ssize_t width = all->out->shape[2], ahead = ahead_of(all);
    const uint16_t *a = columns_of(all, plane, all->down.first[y], ahead), *b = columns_of(all, plane, all->down.first[y] + 1, ahead);
#ifdef X86
    if (all->avx2) {
        add_lines(to, a, b, all->down.weights[y], width, past_caches && fills_lines(to, width));
        return;
    }
#endif
    add_lines_plain(to, a, b, all->down.weights[y], 0, width);
}

static void linear_all(const Scaling *all, const Tone *tone) {
    const Py_buffer *out = all->out;
    const Py_ssize_t planes = out->shape[0], width = out->shape[2], bytes = width * out->itemsize;
    const int past_caches = all->avx2 && out->len >= LARGE;
    for (Py_ssize_t slot = 0; slot < 2 * planes; slot++) all->held[slot] = -1;
    for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
        uint8_t *to = (uint8_t *)out->buf + y * out->strides[1];
        for (Py_ssize_t plane = 0; plane < planes; plane++)
            linear_line(all, plane, y, tone ? all->bytes + plane * width : to + plane * out->strides[0], tone ? 0 : past_caches);
        if (!tone) continue;
        const int fills = fills_lines(to, out->strides[0] | bytes);
        const Line line = {all->bytes, width, to, out->strides[0], width, 0, 0, past_caches && fills};
        tone_line(tone, &line);
    }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

static void nearest_all(const Scaling *all) {
    const Py_buffer *out = all->out;
    const Py_ssize_t width = out->shape[2], item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < out->shape[0]; plane++)
        for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
            const uint8_t *from = line_of(all->pixels, plane, all->down.first[y]);
            uint8_t *to = (uint8_t *)out->buf + plane * out->strides[0] + y * out->strides[1];
#ifdef X86
            if (item == 1 && all->avx2) {
                choose(to, from, &all->across, width, ahead_of(all), out->len >= LARGE && fills_lines(to, width));
                continue;
            }
#endif
            if (item == 1) choose_plain(to, from, &all->across, 0, width);
            else for (Py_ssize_t x = 0; x < width; x++) memcpy(to + 2 * x, from + 2 * (Py_ssize_t)all->across.first[x], 2);
        }
#ifdef X86
    if (all->avx2) _mm_sfence();
#endif
}

/* Read the sides of a window, and find its pixels. Return 0 with an exception set if they are not there. */
static int find_all(Scaling *all, PyObject *down, PyObject *across, int flip, int is_nearest) {
    const Py_ssize_t *part = all->pixels->shape, *shape = all->out->shape, planes = shape[0];
    Side sides[2];
    if (!read_side(down, sides) || !read_side(across, sides + 1) || !are_apart(all->out, all->pixels)) return 0;
    all->sums = malloc((size_t)planes * 2 * sizeof(uint16_t) * (size_t)shape[2] + 1);
    all->held = malloc((size_t)planes * 2 * sizeof(int64_t) + 1);
    all->bytes = malloc((size_t)planes * (size_t)shape[2] + 1);
    if (!get_taps(&all->down, shape[1]) || !get_taps(&all->across, shape[2]) || !all->sums || !all->held || !all->bytes) {
        PyErr_NoMemory();
        return 0;
    }
    if (planes == part[0] && (is_nearest || (sides[0].source > 1 && sides[1].source > 1)) &&
        find_taps(&all->down, sides, shape[1], part[1], flip & 2, is_nearest) &&
        find_taps(&all->across, sides + 1, shape[2], part[2], flip & 1, is_nearest)) {
        find_groups(&all->across, shape[2], part[2], is_nearest ? 1 : 2);
        return 1;
    }
    PyErr_SetString(PyExc_ValueError, "out: a scaled pixel is not made of these pixels");
    return 0;
}

static void release_all(Scaling *all) {
    free_taps(&all->down);
    free_taps(&all->across);
    free(all->sums);
    free(all->held);
    free(all->bytes);
}

static PyObject *linear(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *down, *across, *weights, *lines, *result = NULL;
    Py_buffer pixels, out;
    Arrays arrays;
    int flip, kind;
    if (!PyArg_ParseTuple(arguments, "OOO!O!iOOi", &pixels_object, &out_object, &PyTuple_Type, &down, &PyTuple_Type, &across, &flip,
                          &weights, &lines, &kind) || !is_kind(kind)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 1, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, ITEMS[kind], 1, "out")) goto release_pixels;
    if (!get_arrays(&arrays, weights, lines, 1, out.shape[0], &out)) goto release_out;
    Scaling all = {.pixels = &pixels, .out = &out, .avx2 = has_avx2()};
    const Tone tone = tone_of(&arrays, 0, kind, out.shape[0]);
    if (find_all(&all, down, across, flip, 0)) {
        Py_BEGIN_ALLOW_THREADS
        if (out.len) linear_all(&all, kind != BYTES || tone.weights ? &tone : NULL);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_all(&all);
    release_arrays(&arrays);
release_out:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyObject *nearest(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *down, *across, *result = NULL;
    Py_buffer pixels, out;
    int flip;
    if (!PyArg_ParseTuple(arguments, "OOO!O!i", &pixels_object, &out_object, &PyTuple_Type, &down, &PyTuple_Type, &across, &flip))
        return NULL;
    if (!get_array(pixels_object, &pixels, 3, 0, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, pixels.itemsize, 1, "out")) goto release_pixels;
    Scaling all = {.pixels = &pixels, .out = &out, .avx2 = has_avx2()};
    if (find_all(&all, down, across, flip, 1)) {
        Py_BEGIN_ALLOW_THREADS
        if (out.len) nearest_all(&all);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release_all(&all);
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"linear", linear, METH_VARARGS,
     "linear(pixels, out, down, across, flip, weights, lines, kind): scale (C, H, W) bytes into `out`, with a tone as in tone_kernel. A "
     "side is (source, scaled, start, offset); bit 1 of flip turns columns around, 2 lines."},
    {"nearest", nearest, METH_VARARGS, "nearest(pixels, out, down, across, flip): take the nearest of (C, H, W) pixels of 1 or 2 bytes."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(scale_kernel, "Windows of pictures, scaled.", functions)
