/* Write the lines of pictures as columns: a turned window. Bit 1 of `flip` turns the columns of the result around, 2 its lines,
4 its planes. Squares of eight pixels are turned in registers, because a column is on as many lines of the cache as it is long. */
#include "kernel.h"

enum { COLUMNS = 1, LINES = 2, PLANES = 4, SIDE = 8 };

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_line;
    uint8_t *to;
    Py_ssize_t to_line, height, width, item; /* of the result */
    int flip;
} Plane;

/* Write the pixels from line y up to `bottom` and from column x up to `right` of the result, before it is flipped. */
static void swap_part(const Plane *plane, Py_ssize_t y, Py_ssize_t bottom, Py_ssize_t x, Py_ssize_t right) {
    for (Py_ssize_t line = y; line < bottom; line++) {
        uint8_t *to = plane->to + (plane->flip & LINES ? plane->height - 1 - line : line) * plane->to_line;
        for (Py_ssize_t column = x; column < right; column++) {
            const Py_ssize_t at = plane->flip & COLUMNS ? plane->width - 1 - column : column;
            memcpy(to + at * plane->item, plane->from + column * plane->from_line + line * plane->item, (size_t)plane->item);
        }
    }
}

#ifdef X86
static inline __m128i pair(const Plane *plane, Py_ssize_t y, Py_ssize_t x, int one, int two) {
    const uint8_t *from = plane->from + y;
    return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(from + (x + one) * plane->from_line)),
                             _mm_loadl_epi64((const __m128i *)(from + (x + two) * plane->from_line)));
}

static inline void store_two(const Plane *plane, Py_ssize_t line, Py_ssize_t column, __m128i lines) {
    for (int i = 0; i < 2; i++, line++, lines = _mm_unpackhi_epi64(lines, lines)) {
        const Py_ssize_t at = plane->flip & LINES ? plane->height - 1 - line : line;
        _mm_storel_epi64((__m128i *)(plane->to + at * plane->to_line + column), lines);
    }
}

/* Write eight lines and eight columns of bytes. */
static void swap_square(const Plane *plane, Py_ssize_t y, Py_ssize_t x) {
    __m128i pairs[4], fours[4];
    const int last = plane->flip & COLUMNS ? SIDE - 1 : 0, step = last ? -1 : 1;
    for (int i = 0; i < 4; i++) pairs[i] = pair(plane, y, x, last + 2 * i * step, last + (2 * i + 1) * step);
    for (int i = 0; i < 2; i++) {
        fours[2 * i] = _mm_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]);
        fours[2 * i + 1] = _mm_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]);
    }
    const Py_ssize_t column = last ? plane->width - SIDE - x : x;
    for (int i = 0; i < 2; i++) {
        store_two(plane, y + 4 * i, column, _mm_unpacklo_epi32(fours[i], fours[2 + i]));
        store_two(plane, y + 4 * i + 2, column, _mm_unpackhi_epi32(fours[i], fours[2 + i]));
    }
}
#endif

static void swap_plane(const Plane *plane) {
    Py_ssize_t y = 0, x = 0;
#ifdef X86
    if (plane->item == 1) {
        x = plane->width / SIDE * SIDE;
        for (; y + SIDE <= plane->height; y += SIDE)
            for (Py_ssize_t column = 0; column < x; column += SIDE) swap_square(plane, y, column);
        swap_part(plane, 0, y, x, plane->width);
    }
#endif
    for (; y < plane->height; y += SIDE)
        for (x = 0; x < plane->width; x += SIDE)
            swap_part(plane, y, y + SIDE < plane->height ? y + SIDE : plane->height, x,
                      x + SIDE < plane->width ? x + SIDE : plane->width);
}

static PyObject *swap(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *result = NULL;
    Py_buffer pixels, out;
    int flip;
    if (!PyArg_ParseTuple(arguments, "OOi", &pixels_object, &out_object, &flip)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 0, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, pixels.itemsize, 1, "out")) goto release_pixels;
    const Py_ssize_t *shape = out.shape, planes = shape[0];
    if (planes != pixels.shape[0] || shape[1] != pixels.shape[2] || shape[2] != pixels.shape[1]) {
        PyErr_SetString(PyExc_ValueError, "out: expected as many lines as the pixels have columns, and as many columns as lines");
        goto release;
    }
    if (!are_apart(&out, &pixels)) goto release;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t number = 0; out.len && number < planes; number++) {
        const Py_ssize_t to = flip & PLANES ? planes - 1 - number : number;
        const Plane plane = {(const uint8_t *)pixels.buf + number * pixels.strides[0], pixels.strides[1],
                             (uint8_t *)out.buf + to * out.strides[0], out.strides[1], shape[1], shape[2], out.itemsize, flip};
        swap_plane(&plane);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"swap", swap, METH_VARARGS, "swap(pixels, out, flip): write (C, W, H) pixels of 1 or 2 bytes into `out` (C, H, W), flipped."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(swap_kernel, "Pictures whose lines and columns change places.", functions)
