/* The tones of a batch as Python code passes them. tone_kernel.c and scale_kernel.c include it. */
#ifndef SEGPACK_TONE_ARRAYS_H
#define SEGPACK_TONE_ARRAYS_H

#include "tone_lines.h"

static const Py_ssize_t ITEMS[] = {[BYTES] = 1, [FLOATS] = 4, [HALVES] = 2, [BRAINS] = 2};

/* Return whether a number is that of a kind; if not, with an exception set. */
static int is_kind(int kind) {
    if (kind >= BYTES && kind <= BRAINS) return 1;
    PyErr_Format(PyExc_ValueError, "kind: expected 0 to 3, found %d", kind);
    return 0;
}

/* The arrays of the tones of a batch: (N, K) weights or none, and (C, 2) factors and terms. */
typedef struct {
    Py_buffer weights, lines;
    int has_weights, avx2;
} Arrays;

static void release_arrays(Arrays *arrays) {
    if (arrays->has_weights) PyBuffer_Release(&arrays->weights);
    PyBuffer_Release(&arrays->lines);
}

/* Get the arrays of a tone. Return 0 with an exception set if they are not those of `out`. */
static int get_arrays(Arrays *arrays, PyObject *weights, PyObject *lines, Py_ssize_t rows, Py_ssize_t channels, const Py_buffer *out) {
    arrays->avx2 = has_f16c();
    if (!get_array(lines, &arrays->lines, 2, 4, 0, "lines")) return 0;
    int fits = arrays->lines.shape[0] == channels && arrays->lines.shape[1] == 2 && PyBuffer_IsContiguous(&arrays->lines, 'C') &&
               are_apart(out, &arrays->lines);
    arrays->has_weights = fits && weights != Py_None && get_array(weights, &arrays->weights, 2, 2, 0, "weights");
    if (arrays->has_weights) {
        const Py_ssize_t count = arrays->weights.shape[1];
        fits = arrays->weights.shape[0] == rows && (count == channels + 1 || (channels == GRAYED && count == 2 * GRAYED + 1)) &&
               PyBuffer_IsContiguous(&arrays->weights, 'C') && are_apart(out, &arrays->weights);
    } else fits = fits && weights == Py_None;
    if (fits) return 1;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "expected a factor and a term for each channel, and weights for each row");
    release_arrays(arrays);
    return 0;
}

/* Return the tone of a row. */
static Tone tone_of(const Arrays *arrays, Py_ssize_t row, int kind, Py_ssize_t channels) {
    Tone tone = {.kind = (Kind)kind, .channels = channels, .lines = arrays->lines.buf, .avx2 = arrays->avx2};
    if (arrays->has_weights) {
        const Py_ssize_t count = arrays->weights.shape[1];
        tone.weights = (const int16_t *)arrays->weights.buf + row * count;
        tone.has_gray = count > channels + 1;
    }
    return tone;
}

#endif
