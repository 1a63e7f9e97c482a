/* Copy interleaved pixels into planes.

A JPEG is decoded into red, green, blue, red, …; a row has all red ones first. NumPy copies with a stride of three bytes, one
by one. Here a register is filled with 32 bytes of one plane. Large planes are stored past the caches, as whole rows are
(readers/formats/gather_kernel.c says why): the decoder finds its own memory there again. */
#include "kernel.h"

#define BANDS 3
#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of all planes from which on they are stored past the caches */
#endif

static void split_plain(const uint8_t *restrict pixels, uint8_t *planes, Py_ssize_t plane, Py_ssize_t count) {
    uint8_t *restrict red = planes, *restrict green = planes + plane, *restrict blue = planes + 2 * plane;
    for (Py_ssize_t x = 0; x < count; x++) {
        red[x] = pixels[BANDS * x];
        green[x] = pixels[BANDS * x + 1];
        blue[x] = pixels[BANDS * x + 2];
    }
}

#ifdef X86
#define HALF 16 /* bytes of half a register; shuffles stay within it */

/* Two pieces of 16 bytes, the second from the 16 pixels that follow. */
AVX2 static inline __m256i halves(const uint8_t *from) {
    const uint8_t *next = from + BANDS * HALF;
    return _mm256_set_m128i(_mm_loadu_si128((const __m128i *)next), _mm_loadu_si128((const __m128i *)from));
}

/* Where the bytes of a band are in each piece of 16 pixels; 128 makes a zero. */
AVX2 static void find_bytes(__m256i masks[BANDS][BANDS]) {
    for (int band = 0; band < BANDS; band++)
        for (int piece = 0; piece < BANDS; piece++) {
            uint8_t mask[HALF];
            for (int i = 0; i < HALF; i++) {
                const int offset = BANDS * i + band - HALF * piece;
                mask[i] = offset >= 0 && offset < HALF ? (uint8_t)offset : 128;
            }
            masks[band][piece] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)mask));
        }
}

/* Stores past the caches need multiples of 32, in each plane. */
AVX2 static void split_avx2(const uint8_t *pixels, uint8_t *planes, Py_ssize_t plane, Py_ssize_t count, int past_caches) {
    const Py_ssize_t head = -(uintptr_t)planes & 31;
    Py_ssize_t x = head < count ? head : count;
    __m256i masks[BANDS][BANDS];
    find_bytes(masks);
    split_plain(pixels, planes, plane, x);
    for (past_caches &= plane % 32 == 0; x + 32 <= count; x += 32) {
        const uint8_t *from = pixels + BANDS * x;
        __m256i first = halves(from), second = halves(from + HALF), third = halves(from + 2 * HALF);
        for (int band = 0; band < BANDS; band++) {
            const __m256i *mask = masks[band];
            __m256i *to = (__m256i *)(planes + band * plane + x), bytes = _mm256_shuffle_epi8(first, mask[0]);
            bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(second, mask[1]));
            bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(third, mask[2]));
            if (past_caches) _mm256_stream_si256(to, bytes);
            else _mm256_storeu_si256(to, bytes);
        }
    }
    split_plain(pixels + BANDS * x, planes + x, plane, count - x);
    _mm_sfence();
}
#endif

static void split_lines(const Py_buffer *pixels, const Py_buffer *out, int avx2) {
    Py_ssize_t lines = out->shape[1], width = out->shape[2], from_line = pixels->strides[0], line = out->strides[1];
    if (from_line == BANDS * width && line == width) width *= lines, lines = 1; /* no gaps between them */
    for (Py_ssize_t y = 0; y < lines; y++) {
        const uint8_t *from = (const uint8_t *)pixels->buf + y * from_line;
        uint8_t *to = (uint8_t *)out->buf + y * line;
#ifdef X86
        if (avx2) {
            split_avx2(from, to, out->strides[0], width, out->len >= LARGE);
            continue;
        }
#endif
        split_plain(from, to, out->strides[0], width);
    }
}

static PyObject *split(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *result = NULL;
    Py_buffer pixels, out;
    if (!PyArg_ParseTuple(arguments, "OO", &pixels_object, &out_object)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 1, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 3, 1, 1, "out")) goto release_pixels;
    const Py_ssize_t *from = pixels.shape, *to = out.shape;
    if (from[2] != BANDS || to[0] != BANDS || to[1] != from[0] || to[2] != from[1] ||
        (from[1] > 1 && pixels.strides[1] != BANDS)) {
        PyErr_SetString(PyExc_ValueError, "out: expected 3 planes, as large as the pixels, which have no gaps between them");
        goto release_out;
    }
    if (!are_apart(&out, &pixels)) goto release_out;
    const int avx2 = has_avx2();
    Py_BEGIN_ALLOW_THREADS
    if (out.len) split_lines(&pixels, &out, avx2);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"split", split, METH_VARARGS, "split(pixels, out): copy (H, W, 3) pixels into the planes of `out`, (3, H, W)."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(planes_kernel, "Interleaved pixels into planes.", functions)
