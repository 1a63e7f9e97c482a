/* Faster ways of area_kernel.c, for three channels and eight target pixels or more, on a CPU with AVX2.

- Narrow: sums of lines are below 2^15, so 16 bits hold them. One instruction multiplies and adds two neighbours.
- Wide: any other. Sums of lines are below 2^30, sums of pixels below 2^52, which doubles hold exactly.

A float or double division rounds correctly here. The exact quotient is below 256, and is a half or at least
1 / (2 * total) away from one. A rounded quotient never passes a half, because a half is itself a float, so it could only
be wrong by becoming that half. For this the quotient must be within half a spacing of it. Below 256 the spacing is at
most 2^-16 for floats and 2^-45 for doubles, so this cannot happen if total < 2^16, or total < 2^45. The conversion to
integers then rounds halves to even. Sums are below 2^24 or 2^53, so converting them loses nothing.

Vectors load a few numbers behind the end of a line of sums, which has room for that, and do not use them. If the last
target pixels are fewer than eight, the last eight are computed again. */
AVX2 static void down_avx2(uint32_t *sums, uint16_t *whole, const uint8_t *lines, Py_ssize_t stride, Span span, uint16_t step,
                           Py_ssize_t size) {
    down(sums, whole, lines, stride, span, step, size);
}

AVX2 static void down_narrow(uint16_t *restrict sums, const uint8_t *lines, Py_ssize_t stride, Span span, uint16_t step,
                             Py_ssize_t size) {
    const uint8_t *last = lines + (span.count - 1) * stride;
    uint16_t head = (uint16_t)span.head, tail = (uint16_t)span.tail;
    for (Py_ssize_t x = 0; x < size; x++) sums[x] = (uint16_t)(lines[x] * head + last[x] * tail);
    for (lines += stride; lines < last; lines += stride)
        for (Py_ssize_t x = 0; x < size; x++) sums[x] += (uint16_t)(lines[x] * step);
}

/* Store eight pixels, two in each vector of 32 bits: red, green, blue, unused. */
AVX2 static void put_8(const __m256i *pairs, uint8_t *out, Py_ssize_t plane) {
    const __m256i by_channel = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2,
                                                6, 10, 14, 3, 7, 11, 15);
    __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(pairs[0], pairs[1]), _mm256_packs_epi32(pairs[2], pairs[3]));
    bytes = _mm256_shuffle_epi8(bytes, by_channel);
    __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);
    _mm_storel_epi64((__m128i *)out, _mm_unpacklo_epi8(even, odd));
    _mm_storel_epi64((__m128i *)(out + plane), _mm_srli_si128(_mm_unpacklo_epi8(even, odd), 8));
    _mm_storel_epi64((__m128i *)(out + 2 * plane), _mm_unpackhi_epi8(even, odd));
}

AVX2 static __m256i two_pixels(const uint16_t *left, const uint16_t *right, uint32_t left_units, uint32_t right_units) {
    const __m256i neighbours = _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1, 0, 1, 6, 7, 2, 3, 8, 9, 4, 5,
                                                10, 11, -1, -1, -1, -1);
    __m256i sums = _mm256_set_m128i(_mm_loadu_si128((const __m128i *)right), _mm_loadu_si128((const __m128i *)left));
    __m256i units = _mm256_set_m128i(_mm_set1_epi32((int)right_units), _mm_set1_epi32((int)left_units));
    return _mm256_madd_epi16(_mm256_shuffle_epi8(sums, neighbours), units);
}

/* At most four pixels of three channels in each span. */
AVX2 static void across_narrow(const uint16_t *sums, const Axis *axis, float total, uint8_t *out, Py_ssize_t plane) {
    for (Py_ssize_t j = 0; j < axis->target; j += 8) {
        if (j + 8 > axis->target) j = axis->target - 8; /* the last ones again */
        __m256i pairs[4];
        for (int k = 0; k < 4; k++) {
            const Span *span = axis->spans + j + 2 * k;
            const uint16_t *left = sums + 3 * span[0].first, *right = sums + 3 * span[1].first;
            __m256i sum = two_pixels(left, right, span[0].low, span[1].low);
            if (axis->longest > 2) sum = _mm256_add_epi32(sum, two_pixels(left + 6, right + 6, span[0].high, span[1].high));
            pairs[k] = _mm256_cvtps_epi32(_mm256_div_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(total)));
        }
        put_8(pairs, out + j, plane);
    }
}

AVX2 static __m256d channels_of(const uint32_t *sums) { return _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)sums)); }

AVX2 static void across_wide(const uint32_t *sums, const Axis *axis, double total, uint8_t *out, Py_ssize_t plane) {
    for (Py_ssize_t j = 0; j < axis->target; j += 8) {
        if (j + 8 > axis->target) j = axis->target - 8;
        __m256i pairs[4];
        for (int k = 0; k < 8; k++) {
            Span span = axis->spans[j + k];
            const uint32_t *from = sums + 3 * span.first, *last = from + 3 * (span.count - 1);
            __m256d sum = _mm256_mul_pd(channels_of(from), _mm256_set1_pd(span.head)), whole = _mm256_setzero_pd();
            for (from += 3; from < last; from += 3) whole = _mm256_add_pd(whole, channels_of(from));
            sum = _mm256_add_pd(sum, _mm256_mul_pd(whole, _mm256_set1_pd(axis->step)));
            sum = _mm256_add_pd(sum, _mm256_mul_pd(channels_of(last), _mm256_set1_pd(span.tail)));
            ((__m128i *)pairs)[k] = _mm256_cvtpd_epi32(_mm256_div_pd(sum, _mm256_set1_pd(total)));
        }
        put_8(pairs, out + j, plane);
    }
}
