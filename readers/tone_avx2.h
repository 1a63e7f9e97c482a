/* The tone of lines with AVX2. Only tone_lines.h includes it. */
#define TONE __attribute__((target("avx2,bmi2,f16c"))) static inline
#define PIXELS 32 /* that are made together, as bytes; half as many as numbers */

TONE void store(void *to, __m256i bytes, int past_caches) {
    if (past_caches) _mm256_stream_si256(to, bytes);
    else _mm256_storeu_si256(to, bytes);
}

/* Load 32 pixels, mirrored if the line is. */
TONE __m256i load_pixels(const uint8_t *from, const Line *line, Py_ssize_t x) {
    const __m256i backwards = _mm256_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11,
                                               10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const uint8_t *at = from + (line->is_mirrored ? line->width - PIXELS - x : x);
    const __m256i pixels = _mm256_loadu_si256((const __m256i *)at);
    if (line->ahead && x % 64 == 0) _mm_prefetch((const char *)at + line->ahead, _MM_HINT_T0);
    return line->is_mirrored ? _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pixels, backwards), 0x4E) : pixels;
}

typedef struct {
    __m256i low, high; /* of each half of 32 bytes: the lower eight, the upper eight */
} Words;

/* Return 64 times each of 32 bytes. */
TONE Words times_64(__m256i bytes) {
    const __m256i zero = _mm256_setzero_si256();
    return (Words){_mm256_srli_epi16(_mm256_unpacklo_epi8(zero, bytes), 2), _mm256_srli_epi16(_mm256_unpackhi_epi8(zero, bytes), 2)};
}

TONE Words with_product(Words sums, Words pixels, __m256i weight) {
    return (Words){_mm256_adds_epi16(sums.low, _mm256_mulhrs_epi16(pixels.low, weight)),
                   _mm256_adds_epi16(sums.high, _mm256_mulhrs_epi16(pixels.high, weight))};
}

typedef struct {
    __m256i own[GRAYED], gray[GRAYED], term;
} Weights; /* in registers, or where no store can change them */

TONE Weights weights_of(const Tone *tone, Py_ssize_t first, int count) {
    Weights all = {0};
    for (int c = 0; c < count; c++) {
        all.own[c] = _mm256_set1_epi16(tone->weights[first + c]);
        if (count == GRAYED) all.gray[c] = _mm256_set1_epi16(tone->weights[GRAYED + c]);
    }
    all.term = _mm256_set1_epi16(tone->weights[tone->channels + (tone->has_gray ? GRAYED : 0)]);
    return all;
}

TONE __m256i rounded(Words z) {
    const __m256i half = _mm256_set1_epi16(8);
    return _mm256_packus_epi16(_mm256_srai_epi16(_mm256_adds_epi16(z.low, half), 4), _mm256_srai_epi16(_mm256_adds_epi16(z.high, half), 4));
}

TONE __m256i brains(__m256 numbers) {
    const __m256i bits = _mm256_castps_si256(numbers), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd), 16);
}

/* Store sixteen pixels as numbers. */
TONE void store_numbers(const Tone *tone, Py_ssize_t channel, uint8_t *to, __m256i z, int past_caches) {
    const __m256 factor = _mm256_set1_ps(tone->lines[2 * channel]), term = _mm256_set1_ps(tone->lines[2 * channel + 1]);
    const __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(z)), high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(z, 1));
    const __m256 first = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(low), factor), term);
    const __m256 second = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(high), factor), term);
    if (tone->kind == FLOATS) {
        store(to, _mm256_castps_si256(first), past_caches);
        store(to + 32, _mm256_castps_si256(second), past_caches);
    } else if (tone->kind == HALVES) {
        const __m128i one = _mm256_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT), two = _mm256_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT);
        store(to, _mm256_set_m128i(two, one), past_caches);
    } else store(to, _mm256_permute4x64_epi64(_mm256_packus_epi32(brains(first), brains(second)), 0xD8), past_caches);
}

/* Store 32 pixels as numbers. */
TONE void store_all(const Tone *tone, Py_ssize_t channel, uint8_t *to, Words z, int past_caches) {
    const __m256i none = _mm256_setzero_si256(), most = _mm256_set1_epi16(MOST_Z);
    z = (Words){_mm256_min_epi16(_mm256_max_epi16(z.low, none), most), _mm256_min_epi16(_mm256_max_epi16(z.high, none), most)};
    const Py_ssize_t half = tone->kind == FLOATS ? 64 : 32;
    store_numbers(tone, channel, to, _mm256_permute2x128_si256(z.low, z.high, 0x20), past_caches);
    store_numbers(tone, channel, to + half, _mm256_permute2x128_si256(z.low, z.high, 0x31), past_caches);
}

/* Make the pixels of three channels, or of one. */
TONE Py_ssize_t tone_channels(const Tone *tone, const Line *given, Py_ssize_t first, int count, int is_bytes) {
    const Py_ssize_t item = tone->kind == BYTES ? 1 : tone->kind == FLOATS ? 4 : 2;
    const Line line = *given;
    const int has_weights = tone->weights != NULL;
    const Weights weights = has_weights ? weights_of(tone, first, count) : (Weights){0};
    const uint8_t *from = line.from + first * line.from_plane;
    uint8_t *to = line.to + first * line.to_plane;
    Py_ssize_t x = 0;
    for (; x + PIXELS <= line.width; x += PIXELS) {
        Words pixels[GRAYED], all = {weights.term, weights.term};
        for (int c = 0; c < count; c++) pixels[c] = times_64(load_pixels(from + c * line.from_plane, &line, x));
        for (int c = 0; count == GRAYED && c < GRAYED; c++) all = with_product(all, pixels[c], weights.gray[c]);
        for (int c = 0; c < count; c++) {
            uint8_t *at = to + c * line.to_plane + x * item;
            const Words z = has_weights ? with_product(all, pixels[c], weights.own[c])
                                        : (Words){_mm256_srli_epi16(pixels[c].low, 2), _mm256_srli_epi16(pixels[c].high, 2)};
            if (is_bytes) store(at, rounded(z), line.past_caches);
            else store_all(tone, first + c, at, z, line.past_caches);
        }
    }
    return x;
}

TONE Py_ssize_t tone_all_channels(const Tone *tone, const Line *line, int is_bytes) {
    if (tone->has_gray) return tone_channels(tone, line, 0, GRAYED, is_bytes);
    Py_ssize_t done = 0;
    for (Py_ssize_t c = 0; c < tone->channels; c++) done = tone_channels(tone, line, c, 1, is_bytes);
    return done;
}

TONE Py_ssize_t tone_bytes(const Tone *tone, const Line *line) { return tone_all_channels(tone, line, 1); }
TONE Py_ssize_t tone_numbers(const Tone *tone, const Line *line) { return tone_all_channels(tone, line, 0); }
