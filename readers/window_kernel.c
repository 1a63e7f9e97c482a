/* Copy a window of a picture, line by line, as it is or mirrored.

The window's lines lie far apart in the picture, so the CPU does not foresee the next ones: they are requested while a line
is copied. Lines of a large window are stored past the caches, as whole rows are (readers/formats/gather_kernel.c says why).
A mirrored line is read from its end, 32 pixels at a time, and turned in a register. */
#include "kernel.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

static void mirror_plain(uint8_t *to, const uint8_t *from, Py_ssize_t width, Py_ssize_t item) {
    for (Py_ssize_t x = 0; x < width; x++) memcpy(to + x * item, from + (width - 1 - x) * item, (size_t)item);
}

#ifdef X86
#define LINE 64
#define AHEAD 3 /* lines: one was measured to be too few, with none it takes a tenth longer */

AVX2 static inline __m256i mirrored(__m256i pixels) {
    const __m256i backwards = _mm256_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11,
                                               10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pixels, backwards), 0x4E); /* 0x4E swaps the two halves */
}

/* Copy a line of bytes. The target begins anywhere; stores past the caches need multiples of 32. */
AVX2 static void line_avx2(uint8_t *to, const uint8_t *from, Py_ssize_t width, int flip) {
    const Py_ssize_t head = -(uintptr_t)to & 31;
    Py_ssize_t x = head < width ? head : width;
    if (flip) mirror_plain(to, from + width - x, x, 1);
    else memcpy(to, from, (size_t)x);
    for (; x + 32 <= width; x += 32) {
        const uint8_t *source = flip ? from + width - x - 32 : from + x;
        __m256i pixels = _mm256_loadu_si256((const __m256i *)source);
        _mm256_stream_si256((__m256i *)(to + x), flip ? mirrored(pixels) : pixels);
    }
    if (flip) mirror_plain(to + x, from, width - x, 1);
    else memcpy(to + x, from + x, (size_t)(width - x));
}

static inline void request(const uint8_t *line, Py_ssize_t bytes) {
    for (Py_ssize_t offset = 0; offset < bytes; offset += LINE) _mm_prefetch((const char *)line + offset, _MM_HINT_T0);
}
#endif

static void copy_window(const Py_buffer *out, const Py_buffer *pixels, int flip, int past_caches) {
    const Py_ssize_t height = out->shape[1], width = out->shape[2], item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < out->shape[0]; plane++)
        for (Py_ssize_t y = 0; y < height; y++) {
            uint8_t *to = (uint8_t *)out->buf + plane * out->strides[0] + y * out->strides[1];
            const uint8_t *from = (const uint8_t *)pixels->buf + plane * pixels->strides[0] + y * pixels->strides[1];
#ifdef X86
            if (past_caches && (item == 1 || !flip)) {
                if (y + AHEAD < height) request(from + AHEAD * pixels->strides[1], width * item);
                line_avx2(to, from, width * item, flip);
                continue;
            }
#endif
            if (flip) mirror_plain(to, from, width, item);
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
    const int past_caches = has_avx2() && out.len >= LARGE;
    Py_BEGIN_ALLOW_THREADS
    if (out.len) copy_window(&out, &pixels, flip, past_caches);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"copy", copy, METH_VARARGS, "copy(pixels, out, flip): copy (C, H, W) pixels of 1 or 2 bytes into `out`, mirrored if `flip`."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(window_kernel, "A window of a picture, as it is or mirrored.", functions)
