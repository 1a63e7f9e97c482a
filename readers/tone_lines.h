/* The tone of lines of bytes. tone_kernel.c and scale_kernel.c include it.

A pixel x of a channel becomes z, in sixteenths of a pixel. A product of a pixel and a weight w, in parts of 8192, is
(64 * x * w + 2^14) / 2^15. z is the term of the row, to which the products of all three channels with the weights for gray are
added, if there are such, and then that of the channel with its own weight. Sums stay between -2^15 and 2^15 - 1, and z between
0 and 4080. Without weights z is 16 * x. The result is (z + 8) / 16, or z * factor + term in float32, rounded to what is asked
for. readers/tone.py has the same rule in NumPy. */
#ifndef SEGPACK_TONE_LINES_H
#define SEGPACK_TONE_LINES_H

#include "kernel.h"

#define MOST_Z 4080
#define GRAYED 3 /* channels that have a gray */

typedef enum { BYTES, FLOATS, HALVES, BRAINS } Kind; /* uint8, float32, float16, bfloat16 */

typedef struct {
    Kind kind;
    Py_ssize_t channels;
    const int16_t *weights; /* of each channel, then for gray if there are such, then the term; NULL: none */
    int has_gray;
    const float *lines; /* of each channel the factor and the term; not for BYTES */
    int avx2;
} Tone;

typedef struct {
    const uint8_t *from;
    Py_ssize_t from_plane;
    uint8_t *to;
    Py_ssize_t to_plane, width, ahead; /* bytes from what is read to what is requested */
    int is_mirrored, past_caches;
} Line; /* of all channels */

static uint16_t half_of(float number) {
    uint32_t bits, sign;
    memcpy(&bits, &number, 4);
    sign = bits >> 16 & 0x8000, bits &= 0x7FFFFFFF;
    if (bits >= 0x47800000) return (uint16_t)(sign | 0x7C00);
    if (bits >= 0x38800000) return (uint16_t)(sign | (bits + 0xC8000FFF + (bits >> 13 & 1)) >> 13);
    float small; /* less than the least normal half: a sum with 0.5 rounds it */
    memcpy(&small, &bits, 4);
    small += 0.5f;
    memcpy(&bits, &small, 4);
    return (uint16_t)(sign | (bits - 0x3F000000));
}

static uint16_t brain_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, 4);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline int32_t added(int32_t sum, int32_t pixel, int16_t weight) {
    sum += (64 * pixel * weight + (1 << 14)) >> 15;
    return sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum;
}

static void tone_plain(const Tone *tone, const Line *line, Py_ssize_t first) {
    for (Py_ssize_t x = first; x < line->width; x++) {
        const uint8_t *from = line->from + (line->is_mirrored ? line->width - 1 - x : x);
        const int16_t *gray = tone->weights + tone->channels;
        int32_t all = tone->weights ? gray[tone->has_gray ? GRAYED : 0] : 0;
        for (Py_ssize_t c = 0; tone->has_gray && c < GRAYED; c++) all = added(all, from[c * line->from_plane], gray[c]);
        for (Py_ssize_t c = 0; c < tone->channels; c++) {
            const int32_t pixel = from[c * line->from_plane];
            int32_t z = tone->weights ? added(all, pixel, tone->weights[c]) : 16 * pixel;
            z = z < 0 ? 0 : z > MOST_Z ? MOST_Z : z;
            uint8_t *to = line->to + c * line->to_plane;
            if (tone->kind == BYTES) {
                to[x] = (uint8_t)((z + 8) >> 4);
                continue;
            }
            const float number = (float)z * tone->lines[2 * c] + tone->lines[2 * c + 1];
            const uint16_t bits = tone->kind == HALVES ? half_of(number) : brain_of(number);
            if (tone->kind == FLOATS) memcpy(to + 4 * x, &number, 4);
            else memcpy(to + 2 * x, &bits, 2);
        }
    }
}

static int has_f16c(void) {
#ifdef X86
    return has_avx2() && __builtin_cpu_supports("f16c");
#else
    return 0;
#endif
}

#ifdef X86
#include "tone_avx2.h"
#endif

/* Make a line of all channels. */
static void tone_line(const Tone *tone, const Line *line) {
    Py_ssize_t done = 0;
#ifdef X86
    if (tone->avx2) done = tone->kind == BYTES ? tone_bytes(tone, line) : tone_numbers(tone, line);
#endif
    tone_plain(tone, line, done);
}

#endif
