/* A line of a window, copied or mirrored with AVX2. Only window_kernel.c includes it.

A line that fills whole lines of the cache is stored past the caches. A part of a line takes longer there than all of it, so
other lines are stored through the caches. */
#ifndef SEGPACK_WINDOW_LINES_H
#define SEGPACK_WINDOW_LINES_H

#include "past_caches.h"

static void mirror_plain(uint8_t *to, const uint8_t *from, Py_ssize_t width, Py_ssize_t item) {
    for (Py_ssize_t x = 0; x < width; x++) memcpy(to + x * item, from + (width - 1 - x) * item, (size_t)item);
}

#ifdef X86
/* Return where the pixels of 16 bytes are once they are mirrored. */
AVX2 static inline __m256i backwards(Py_ssize_t item) {
    const __m128i ones = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m128i twos = _mm_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
    return _mm256_broadcastsi128_si256(item == 1 ? ones : twos);
}

AVX2 static inline __m256i mirrored(__m256i pixels, __m256i order) {
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pixels, order), 0x4E); /* 0x4E swaps the two halves */
}

static inline int fills_lines(const uint8_t *to, Py_ssize_t bytes) {
    return (((uintptr_t)to | (uintptr_t)bytes) & (LINE - 1)) == 0;
}

/* Mirror a line of so many bytes, of pixels of 1 or 2 bytes. */
AVX2 static void mirror_line(uint8_t *to, const uint8_t *from, Py_ssize_t width, Py_ssize_t item, Py_ssize_t ahead) {
    const int past_caches = fills_lines(to, width);
    const __m256i order = backwards(item);
    Py_ssize_t x = 0;
    for (; x + STEP <= width; x += STEP) {
        const uint8_t *pixels = from + width - x - STEP;
        __m256i *last = (__m256i *)(to + x + STEP - 32), bytes[STEP / 32];
        for (int i = 0; i < STEP / 32; i++) {
            if (i % 2 == 0) _mm_prefetch((const char *)pixels + ahead + 32 * i, _MM_HINT_T0);
            bytes[i] = _mm256_loadu_si256((const __m256i *)(pixels + 32 * i));
        }
        LOADED_BEFORE_STORED;
        for (int i = 0; i < STEP / 32; i++) {
            if (past_caches) _mm256_stream_si256(last - i, mirrored(bytes[i], order));
            else _mm256_storeu_si256(last - i, mirrored(bytes[i], order));
        }
    }
    while (width >= 32 && x < width) { /* the last 32 bytes may be there in part */
        if (x + 32 > width) x = width - 32;
        _mm256_storeu_si256((__m256i *)(to + x), mirrored(_mm256_loadu_si256((const __m256i *)(from + width - x - 32)), order));
        x += 32;
    }
    mirror_plain(to + x, from, (width - x) / item, item);
}

/* Copy a line of bytes. */
AVX2 static void copy_line(uint8_t *to, const uint8_t *from, Py_ssize_t width, Py_ssize_t ahead) {
    if (fills_lines(to, width)) {
        copy_past_caches(to, from, (size_t)width, ahead);
        return;
    }
    for (Py_ssize_t x = 0; x < width; x += LINE) _mm_prefetch((const char *)from + ahead + x, _MM_HINT_T0);
    memcpy(to, from, (size_t)width);
}
#endif

#endif
