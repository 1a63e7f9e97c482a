/* Two lines or columns of bytes added by their weights. Only scale_kernel.c includes it. */
#ifndef SEGPACK_SCALE_LINES_H
#define SEGPACK_SCALE_LINES_H

#include "kernel.h"

typedef struct {
    int32_t *first;    /* the first of two pixels, in the part */
    uint32_t *weights; /* of the first in the lower 16 bits, of the second in the upper ones */
} Taps;

static void add_lines_plain(uint16_t *out, const uint8_t *a, const uint8_t *b, uint32_t weights, Py_ssize_t from, Py_ssize_t to) {
    const uint32_t first = weights & 0xFFFF, second = weights >> 16;
    for (Py_ssize_t x = from; x < to; x++) out[x] = (uint16_t)(a[x] * first + b[x] * second);
}

static void add_columns_plain(uint8_t *out, const uint16_t *line, const Taps *taps, Py_ssize_t from, Py_ssize_t to) {
    for (Py_ssize_t x = from; x < to; x++) {
        const uint16_t *at = line + taps->first[x];
        const uint32_t weights = taps->weights[x];
        out[x] = (uint8_t)((at[0] * (weights & 0xFFFF) + at[1] * (weights >> 16) + (1 << 15)) >> 16);
    }
}

#ifdef X86
AVX2 static void add_lines(uint16_t *out, const uint8_t *a, const uint8_t *b, uint32_t weights, Py_ssize_t from, Py_ssize_t to) {
    const __m256i first = _mm256_set1_epi16((short)(weights & 0xFFFF)), second = _mm256_set1_epi16((short)(weights >> 16));
    Py_ssize_t x = from;
    for (; x + 16 <= to; x += 16) {
        const __m256i one = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + x)));
        const __m256i two = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(b + x)));
        const __m256i sum = _mm256_add_epi16(_mm256_mullo_epi16(one, first), _mm256_mullo_epi16(two, second));
        _mm256_storeu_si256((__m256i *)(out + x), sum);
    }
    add_lines_plain(out, a, b, weights, x, to);
}

/* Eight pairs of neighbours are gathered as numbers of 32 bits. Multiplications are of signed numbers, so 2^15 is taken from
   each of a pair, and 2^15 * 256 added to the sum. */
AVX2 static __m256i eight_columns(const uint16_t *line, const int32_t *first, const uint32_t *weights) {
    const __m256i at = _mm256_loadu_si256((const __m256i *)first), weight = _mm256_loadu_si256((const __m256i *)weights);
    const __m256i pairs = _mm256_xor_si256(_mm256_i32gather_epi32((const int *)line, at, 2), _mm256_set1_epi16((short)0x8000));
    const __m256i sums = _mm256_add_epi32(_mm256_madd_epi16(pairs, weight), _mm256_set1_epi32((1 << 23) + (1 << 15)));
    return _mm256_srli_epi32(sums, 16);
}

AVX2 static void add_columns(uint8_t *out, const uint16_t *line, const Taps *taps, Py_ssize_t from, Py_ssize_t to) {
    Py_ssize_t x = from;
    for (; x + 16 <= to; x += 16) {
        const __m256i low = eight_columns(line, taps->first + x, taps->weights + x);
        const __m256i high = eight_columns(line, taps->first + x + 8, taps->weights + x + 8);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
        const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(out + x), bytes);
    }
    add_columns_plain(out, line, taps, x, to);
}
#endif

#endif
