/* Two lines or columns of bytes added by their weights. Only scale_kernel.c includes it. */
#ifndef SEGPACK_SCALE_LINES_H
#define SEGPACK_SCALE_LINES_H

#include "kernel.h"

#define CACHE_LINE 64
#define GROUP 8   /* columns that are made together */
#define BEHIND 16 /* pairs behind a line that may be loaded, and are not used */

typedef struct {
    int32_t *first;    /* the first of two pixels, in the part */
    uint32_t *weights; /* of the first in the lower 16 bits, of the second in the upper ones */
    int32_t *base;     /* the least `first` of each eight */
    int32_t *near;     /* `first`, counted from the base if `span` is small */
    int32_t span;      /* the pixels from the least `first` of eight to the largest, at most */
} Taps;

/* Fill in `base`, `near` and `span`. */
static void find_groups(Taps *taps, Py_ssize_t count) {
    taps->span = 0;
    for (Py_ssize_t x = 0; x + GROUP <= count; x += GROUP) {
        const int32_t first = taps->first[x], last = taps->first[x + GROUP - 1], least = first < last ? first : last;
        const int32_t span = first + last - 2 * least + 1; /* they ascend or descend */
        taps->base[x / GROUP] = least;
        if (span > taps->span) taps->span = span;
    }
    for (Py_ssize_t x = 0; x < count; x++)
        taps->near[x] = taps->first[x] - (taps->span > 2 * GROUP || x / GROUP * GROUP + GROUP > count ? 0 : taps->base[x / GROUP]);
}

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
/* Write the sums of each column and of the next one, as signed numbers: 2^15 is taken from each. */
AVX2 static void add_pairs(uint32_t *out, const uint8_t *a, const uint8_t *b, uint32_t weights, Py_ssize_t from, Py_ssize_t to,
                           Py_ssize_t ahead) {
    const __m256i first = _mm256_set1_epi16((short)(weights & 0xFFFF)), second = _mm256_set1_epi16((short)(weights >> 16));
    const __m256i middle = _mm256_set1_epi16((short)0x8000);
    Py_ssize_t x = from;
    for (; x + 17 <= to; x += 16) {
        __m256i sums[2];
        _mm_prefetch((const char *)b + x + ahead, _MM_HINT_T0);
        for (int next = 0; next < 2; next++) {
            const __m256i one = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + x + next)));
            const __m256i two = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(b + x + next)));
            const __m256i sum = _mm256_add_epi16(_mm256_mullo_epi16(one, first), _mm256_mullo_epi16(two, second));
            sums[next] = _mm256_xor_si256(sum, middle);
        }
        const __m256i low = _mm256_unpacklo_epi16(sums[0], sums[1]), high = _mm256_unpackhi_epi16(sums[0], sums[1]);
        _mm256_storeu_si256((__m256i *)(out + x), _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(out + x + 8), _mm256_permute2x128_si256(low, high, 0x31));
    }
    for (; x + 1 < to; x++) {
        uint16_t sums[2];
        add_lines_plain(sums, a + x, b + x, weights, 0, 2);
        out[x] = (uint32_t)(sums[0] ^ 0x8000) | (uint32_t)(sums[1] ^ 0x8000) << 16;
    }
}

/* Return the pairs of eight columns. If all of a group are among sixteen pairs, two registers have them. */
AVX2 static inline __m256i eight_pairs(const uint32_t *pairs, const Taps *taps, Py_ssize_t x) {
    const __m256i at = _mm256_loadu_si256((const __m256i *)(taps->near + x));
    if (taps->span > 2 * GROUP) return _mm256_i32gather_epi32((const int *)pairs, at, 4);
    const uint32_t *base = pairs + taps->base[x / GROUP];
    const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)base), at);
    if (taps->span <= GROUP) return low;
    const __m256i high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(base + GROUP)), at);
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), is_high));
}

/* Multiplications are of signed numbers, so 2^15 * 256 is added to the sum. */
AVX2 static inline __m256i eight_columns(const uint32_t *pairs, const Taps *taps, Py_ssize_t x) {
    const __m256i weights = _mm256_loadu_si256((const __m256i *)(taps->weights + x));
    const __m256i sums = _mm256_madd_epi16(eight_pairs(pairs, taps, x), weights);
    return _mm256_srli_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32((1 << 23) + (1 << 15))), 16);
}

AVX2 static void add_columns(uint8_t *out, const uint32_t *pairs, const Taps *taps, Py_ssize_t width, int past_caches) {
    const int fills_lines = past_caches && (((uintptr_t)out | (uintptr_t)width) & (CACHE_LINE - 1)) == 0;
    Py_ssize_t x = 0;
    for (; x + 2 * GROUP <= width; x += 2 * GROUP) {
        const __m256i low = eight_columns(pairs, taps, x), high = eight_columns(pairs, taps, x + GROUP);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
        const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        if (fills_lines) _mm_stream_si128((__m128i *)(out + x), bytes);
        else _mm_storeu_si128((__m128i *)(out + x), bytes);
    }
    for (; x < width; x++) {
        const uint32_t pair = pairs[taps->first[x]], weights = taps->weights[x];
        const uint32_t sum = ((pair & 0xFFFF) ^ 0x8000) * (weights & 0xFFFF) + ((pair >> 16) ^ 0x8000) * (weights >> 16);
        out[x] = (uint8_t)((sum + (1 << 15)) >> 16);
    }
}
#endif

#endif
