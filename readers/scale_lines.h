/* Lines of bytes that are scaled: columns first, as sums of two pixels in 16 bits, then lines. Only scale_picture.h includes it.

A sum a * (256 - w) + b * w is less than 2^16, so it is exact in numbers of 16 bits. Of two such sums the upper 16 bits of both
products are added, which is less than 2^16 as well, and rounded to a byte. */
#ifndef SEGPACK_SCALE_LINES_H
#define SEGPACK_SCALE_LINES_H

#include "scale_taps.h"


static void add_columns_plain(uint16_t *sums, const uint8_t *line, const Taps *taps, Py_ssize_t x, Py_ssize_t width) {
    for (; x < width; x++) {
        const uint8_t *at = line + taps->first[x];
        sums[x] = (uint16_t)(at[0] * (256 - taps->weights[x]) + at[1] * taps->weights[x]);
    }
}

static void add_lines_plain(uint8_t *out, const uint16_t *a, const uint16_t *b, uint32_t weight, Py_ssize_t x, Py_ssize_t width) {
    for (; x < width; x++) out[x] = (uint8_t)(((a[x] * (256 - weight) >> 8) + (b[x] * weight >> 8) + 128) >> 8);
}

static void choose_plain(uint8_t *out, const uint8_t *line, const Taps *taps, Py_ssize_t x, Py_ssize_t width) {
    for (; x < width; x++) out[x] = line[taps->first[x]];
}

#ifdef X86
AVX2 static void add_columns(uint16_t *sums, const uint8_t *line, const Taps *taps, Py_ssize_t width, Py_ssize_t ahead) {
    const __m256i minus_one_and_one = _mm256_set1_epi16(0x01FF);
    const Taps kept = *taps; /* the compiler must not expect that a store changes it */
    for (Py_ssize_t x = 0; x < kept.fast; x += GROUP) {
        const uint8_t *low = line + kept.base[x / HALF], *high = line + kept.base[x / HALF + 1];
        _mm_prefetch((const char *)low + ahead, _MM_HINT_T0);
        const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                                       _mm_loadu_si128((const __m128i *)high), 1);
        const __m256i pairs = _mm256_shuffle_epi8(pixels, _mm256_loadu_si256((const __m256i *)(kept.chosen + 2 * x)));
        const __m256i change = _mm256_maddubs_epi16(pairs, minus_one_and_one); /* the second pixel less the first */
        const __m256i part = _mm256_mullo_epi16(change, _mm256_loadu_si256((const __m256i *)(kept.weights + x)));
        _mm256_storeu_si256((__m256i *)(sums + x), _mm256_add_epi16(_mm256_slli_epi16(pairs, 8), part));
    }
    add_columns_plain(sums, line, taps, taps->fast, width);
}

/* Return sixteen pixels of two lines, as words. */
AVX2 static inline __m256i sixteen(const uint16_t *a, const uint16_t *b, __m256i first, __m256i second) {
    const __m256i one = _mm256_mulhi_epu16(_mm256_loadu_si256((const __m256i *)a), first);
    const __m256i two = _mm256_mulhi_epu16(_mm256_loadu_si256((const __m256i *)b), second);
    return _mm256_srli_epi16(_mm256_add_epi16(_mm256_add_epi16(one, two), _mm256_set1_epi16(128)), 8);
}

/* A line of the whole weight is taken twice with half of it: then only the lowest bit is lost, which no byte depends on. */
AVX2 static void add_lines(uint8_t *out, const uint16_t *a, const uint16_t *b, int weight, Py_ssize_t width, int past_caches) {
    if (weight % 256 == 0) {
        a = b = weight ? b : a;
        weight = 128;
    }
    const __m256i first = _mm256_set1_epi16((short)((256 - weight) << 8)), second = _mm256_set1_epi16((short)(weight << 8));
    Py_ssize_t x = 0;
    for (; x + 2 * GROUP <= width; x += 2 * GROUP) {
        const __m256i low = sixteen(a + x, b + x, first, second), high = sixteen(a + x + GROUP, b + x + GROUP, first, second);
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xD8);
        if (past_caches) _mm256_stream_si256((__m256i *)(out + x), bytes);
        else _mm256_storeu_si256((__m256i *)(out + x), bytes);
    }
    add_lines_plain(out, a, b, (uint32_t)weight, x, width);
}

AVX2 static void choose(uint8_t *out, const uint8_t *line, const Taps *taps, Py_ssize_t width, Py_ssize_t ahead, int past_caches) {
    const Taps kept = *taps;
    for (Py_ssize_t x = 0; x < kept.fast; x += GROUP) {
        const uint8_t *first = line + kept.base[x / HALF], *second = line + kept.base[x / HALF + 1];
        _mm_prefetch((const char *)first + ahead, _MM_HINT_T0);
        const __m128i low = _mm_loadu_si128((const __m128i *)first), high = _mm_loadu_si128((const __m128i *)second);
        const __m128i at = _mm_loadu_si128((const __m128i *)(kept.chosen + x));
        const __m128i one = _mm_shuffle_epi8(low, at), two = _mm_shuffle_epi8(high, _mm_unpackhi_epi64(at, at));
        if (past_caches) _mm_stream_si128((__m128i *)(out + x), _mm_unpacklo_epi64(one, two));
        else _mm_storeu_si128((__m128i *)(out + x), _mm_unpacklo_epi64(one, two));
    }
    choose_plain(out, line, taps, taps->fast, width);
}
#endif

#endif
