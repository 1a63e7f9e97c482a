/* Scale windows of pictures: bytes by the two nearest pixels of each side, labels by the nearest one.

A side of S pixels becomes D. Pixel i of the scaled side lies at n = (2i+1) * S - D, in units of 1 / 2D pixels: between the
pixels n / 2D and the next one, whose weight is n % 2D, rounded to 256ths. Two lines are added to numbers of 16 bits, then two
of their columns to numbers of 24, and these are rounded once. readers/scaled.py has the same rule in NumPy. */
#include "scale_lines.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

#define AHEAD 2 /* lines: they are requested while a line is added */

typedef struct {
    int64_t source, scaled; /* the whole side, before and after */
    int64_t start;          /* the first scaled pixel that is wanted */
    int64_t offset;         /* the source pixel that is the first of the part */
} Side;

static int read_side(PyObject *object, Side *side) {
    long long numbers[4];
    if (!PyArg_ParseTuple(object, "LLLL", numbers, numbers + 1, numbers + 2, numbers + 3)) return 0;
    *side = (Side){numbers[0], numbers[1], numbers[2], numbers[3]};
    const int64_t most = INT32_MAX;
    if (side->source >= 1 && side->source <= most && side->scaled >= 1 && side->scaled <= most && side->start >= 0 &&
        side->start <= most && side->offset >= 0 && side->offset <= most) return 1;
    PyErr_SetString(PyExc_ValueError, "a side: expected its pixels, its scaled pixels, and where both begin");
    return 0;
}

/* Fill in the pixels of `count` scaled ones, backwards if `flip`. Return 0 if one of them is not in the part. */
static int find_taps(Taps *taps, const Side *side, Py_ssize_t count, Py_ssize_t part, int flip, int is_nearest) {
    for (Py_ssize_t x = 0; x < count; x++) {
        const int64_t i = side->start + (flip ? count - 1 - x : x);
        if (i >= side->scaled) return 0; /* so no product below is too large */
        const int64_t doubled = (2 * i + 1) * side->source;
        int64_t first, weight = 0;
        if (is_nearest) first = doubled / (2 * side->scaled);
        else {
            const int64_t n = doubled - side->scaled, last = side->source - 2;
            first = n < 0 ? 0 : n / (2 * side->scaled);
            weight = n < 0 ? 0 : ((n % (2 * side->scaled)) * 256 + side->scaled) / (2 * side->scaled);
            if (first > last) first = last, weight = 256;
        }
        first -= side->offset;
        if (first < 0 || first + !is_nearest >= part) return 0;
        taps->first[x] = (int32_t)first;
        taps->weights[x] = (uint32_t)(256 - weight) | (uint32_t)weight << 16;
    }
    return 1;
}

static void linear_all(const Py_buffer *pixels, const Py_buffer *out, const Taps *down, const Taps *across, uint32_t *line,
                       int fast) {
    const Py_ssize_t width = out->shape[2];
    Py_ssize_t from = pixels->shape[2], to = 0; /* the columns that are used */
    for (Py_ssize_t x = 0; x < width; x++) {
        if (across->first[x] < from) from = across->first[x];
        if (across->first[x] + 2 > to) to = across->first[x] + 2;
    }
    for (Py_ssize_t plane = 0; plane < out->shape[0]; plane++)
        for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
            const uint8_t *a = (const uint8_t *)pixels->buf + plane * pixels->strides[0] + down->first[y] * pixels->strides[1];
            const uint8_t *b = a + pixels->strides[1];
            uint8_t *to_line = (uint8_t *)out->buf + plane * out->strides[0] + y * out->strides[1];
#ifdef X86
            if (fast) {
                add_pairs(line, a, b, down->weights[y], from, to, AHEAD * pixels->strides[1]);
                add_columns(to_line, line, across, width, out->len >= LARGE);
                continue;
            }
#endif
            add_lines_plain((uint16_t *)line, a, b, down->weights[y], from, to);
            add_columns_plain(to_line, (const uint16_t *)line, across, 0, width);
        }
#ifdef X86
    if (fast) _mm_sfence();
#endif
}

static void nearest_all(const Py_buffer *pixels, const Py_buffer *out, const Taps *down, const Taps *across) {
    const Py_ssize_t width = out->shape[2], item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < out->shape[0]; plane++)
        for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
            const uint8_t *from = (const uint8_t *)pixels->buf + plane * pixels->strides[0] + down->first[y] * pixels->strides[1];
            uint8_t *to = (uint8_t *)out->buf + plane * out->strides[0] + y * out->strides[1];
            if (y > 0 && down->first[y] == down->first[y - 1]) memcpy(to, to - out->strides[1], (size_t)(width * item));
            else if (item == 1) for (Py_ssize_t x = 0; x < width; x++) to[x] = from[across->first[x]];
            else for (Py_ssize_t x = 0; x < width; x++) memcpy(to + 2 * x, from + 2 * (Py_ssize_t)across->first[x], 2);
        }
}

static PyObject *scale(PyObject *arguments, int is_nearest) {
    PyObject *pixels_object, *out_object, *down_object, *across_object, *result = NULL;
    Py_buffer pixels, out;
    Side sides[2];
    int flip;
    if (!PyArg_ParseTuple(arguments, "OOO!O!p", &pixels_object, &out_object, &PyTuple_Type, &down_object, &PyTuple_Type,
                          &across_object, &flip) ||
        !read_side(down_object, sides) || !read_side(across_object, sides + 1)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, is_nearest ? 0 : 1, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, pixels.itemsize, 1, "out")) goto release_pixels;
    const Py_ssize_t height = out.shape[1], width = out.shape[2];
    const size_t count = (size_t)height + (size_t)width + 1;
    int32_t *first = malloc(count * sizeof(int32_t)), *near = malloc(2 * count * sizeof(int32_t));
    uint32_t *weights = malloc(count * sizeof(uint32_t));
    uint32_t *line = calloc((size_t)pixels.shape[2] + BEHIND, sizeof(uint32_t));
    Taps down = {.first = first, .weights = weights};
    Taps across = {.first = first + height, .weights = weights + height, .base = near + count, .near = near};
    if (!first || !near || !weights || !line) {
        PyErr_NoMemory();
        goto release;
    }
    if (!are_apart(&out, &pixels)) goto release;
    if (out.shape[0] != pixels.shape[0] || (!is_nearest && (sides[0].source < 2 || sides[1].source < 2)) ||
        !find_taps(&down, sides, height, pixels.shape[1], 0, is_nearest) ||
        !find_taps(&across, sides + 1, width, pixels.shape[2], flip, is_nearest)) {
        PyErr_SetString(PyExc_ValueError, "out: a scaled pixel is not made of these pixels");
        goto release;
    }
    const int fast = has_avx2();
    if (!is_nearest) find_groups(&across, width);
    Py_BEGIN_ALLOW_THREADS
    if (out.len && is_nearest) nearest_all(&pixels, &out, &down, &across);
    else if (out.len) linear_all(&pixels, &out, &down, &across, line, fast);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    free(first);
    free(near);
    free(weights);
    free(line);
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyObject *linear(PyObject *module, PyObject *arguments) { return scale(arguments, 0); }
static PyObject *nearest(PyObject *module, PyObject *arguments) { return scale(arguments, 1); }

static PyMethodDef functions[] = {
    {"linear", linear, METH_VARARGS,
     "linear(pixels, out, down, across, flip): scale (C, H, W) bytes into `out`. A side is (source, scaled, start, offset)."},
    {"nearest", nearest, METH_VARARGS, "nearest(pixels, out, down, across, flip): take the nearest of (C, H, W) pixels of 1 or 2 bytes."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(scale_kernel, "Windows of pictures, scaled.", functions)
