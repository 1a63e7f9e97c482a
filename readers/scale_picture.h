/* A window of a picture that is scaled. Only scale_kernel.c includes it.

Two columns are added to numbers of 16 bits, then two of their lines. The sums of a line are held for the next one. A picture may
get another tone on the way. */
#ifndef SEGPACK_SCALE_PICTURE_H
#define SEGPACK_SCALE_PICTURE_H

#include "scale_lines.h"
#include "tone_lines.h"

#ifndef LARGE /* a drill has another */
#define LARGE (128 << 10) /* bytes of a window from which on it is stored past the caches */
#endif

#define AHEAD 2 /* lines: they are requested while a line is added */
#define CACHE_LINE 64

typedef struct {
    Py_buffer pixels, out; /* of three axes */
    Taps down, across;
    uint16_t *sums; /* two lines of each plane: the even and the odd one that came last */
    int64_t *held;  /* the numbers of these lines */
    uint8_t *bytes; /* a line of each plane, before it gets its tone */
    int avx2;
} Scaling;

static const uint8_t *line_of(const Py_buffer *pixels, Py_ssize_t plane, Py_ssize_t y) {
    return (const uint8_t *)pixels->buf + plane * pixels->strides[0] + y * pixels->strides[1];
}

/* Return the sums of the columns of a line: those that are held, or new ones. */
static const uint16_t *columns_of(const Scaling *all, Py_ssize_t plane, int32_t y, Py_ssize_t ahead) {
    const Py_ssize_t width = all->out.shape[2], slot = 2 * plane + y % 2;
    uint16_t *sums = all->sums + slot * width;
    if (all->held[slot] == y) return sums;
    all->held[slot] = y;
    const uint8_t *line = line_of(&all->pixels, plane, y);
#ifdef X86
    if (all->avx2) {
        add_columns(sums, line, &all->across, width, ahead);
        return sums;
    }
#endif
    add_columns_plain(sums, line, &all->across, 0, width);
    return sums;
}

/* Return how many bytes from a line those are that will be read soon. */
static Py_ssize_t ahead_of(const Scaling *all) {
    const int descends = all->down.first[0] > all->down.first[all->out.shape[1] - 1];
    return (descends ? -AHEAD : AHEAD) * all->pixels.strides[1];
}

static int fills_lines(const uint8_t *to, Py_ssize_t bytes) {
    return (((uintptr_t)to | (uintptr_t)bytes) & (CACHE_LINE - 1)) == 0;
}

static void linear_line(const Scaling *all, Py_ssize_t plane, Py_ssize_t y, uint8_t *to, int past_caches) {
    const Py_ssize_t width = all->out.shape[2], ahead = ahead_of(all);
    const uint16_t *a = columns_of(all, plane, all->down.first[y], ahead), *b = columns_of(all, plane, all->down.first[y] + 1, ahead);
#ifdef X86
    if (all->avx2) {
        add_lines(to, a, b, all->down.weights[y], width, past_caches && fills_lines(to, width));
        return;
    }
#endif
    add_lines_plain(to, a, b, all->down.weights[y], 0, width);
}

static void linear_all(const Scaling *all, const Tone *tone) {
    const Py_buffer *out = &all->out;
    const Py_ssize_t planes = out->shape[0], width = out->shape[2], bytes = width * out->itemsize;
    const int past_caches = all->avx2 && out->len >= LARGE;
    for (Py_ssize_t slot = 0; slot < 2 * planes; slot++) all->held[slot] = -1;
    for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
        uint8_t *to = (uint8_t *)out->buf + y * out->strides[1];
        for (Py_ssize_t plane = 0; plane < planes; plane++)
            linear_line(all, plane, y, tone ? all->bytes + plane * width : to + plane * out->strides[0], tone ? 0 : past_caches);
        if (!tone) continue;
        const int fills = fills_lines(to, out->strides[0] | bytes);
        const Line line = {all->bytes, width, to, out->strides[0], width, 0, 0, past_caches && fills};
        tone_line(tone, &line);
    }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

static void nearest_all(const Scaling *all) {
    const Py_buffer *out = &all->out;
    const Py_ssize_t width = out->shape[2], item = out->itemsize;
    for (Py_ssize_t plane = 0; plane < out->shape[0]; plane++)
        for (Py_ssize_t y = 0; y < out->shape[1]; y++) {
            const uint8_t *from = line_of(&all->pixels, plane, all->down.first[y]);
            uint8_t *to = (uint8_t *)out->buf + plane * out->strides[0] + y * out->strides[1];
#ifdef X86
            if (item == 1 && all->avx2) {
                choose(to, from, &all->across, width, ahead_of(all), out->len >= LARGE && fills_lines(to, width));
                continue;
            }
#endif
            if (item == 1) choose_plain(to, from, &all->across, 0, width);
            else for (Py_ssize_t x = 0; x < width; x++) memcpy(to + 2 * x, from + 2 * (Py_ssize_t)all->across.first[x], 2);
        }
#ifdef X86
    if (all->avx2) _mm_sfence();
#endif
}

typedef enum { FOUND, NOT_THERE, NO_MEMORY } Found;

/* Find the pixels of a window. It needs no GIL. */
static Found find_all(Scaling *all, const Side *down, const Side *across, int flip, int is_nearest) {
    const Py_ssize_t *part = all->pixels.shape, *shape = all->out.shape, planes = shape[0];
    all->sums = malloc((size_t)planes * 2 * sizeof(uint16_t) * (size_t)shape[2] + 1);
    all->held = malloc((size_t)planes * 2 * sizeof(int64_t) + 1);
    all->bytes = malloc((size_t)planes * (size_t)shape[2] + 1);
    if (!get_taps(&all->down, shape[1]) || !get_taps(&all->across, shape[2]) || !all->sums || !all->held || !all->bytes) return NO_MEMORY;
    if (planes != part[0] || (!is_nearest && (down->source < 2 || across->source < 2)) ||
        !find_taps(&all->down, down, shape[1], part[1], flip & 2, is_nearest) ||
        !find_taps(&all->across, across, shape[2], part[2], flip & 1, is_nearest)) return NOT_THERE;
    find_groups(&all->across, shape[2], part[2], is_nearest ? 1 : 2);
    return FOUND;
}

/* Return whether the pixels of a window were found; if not, with an exception set. */
static int are_found(Found found) {
    if (found == NO_MEMORY) PyErr_NoMemory();
    else if (found == NOT_THERE) PyErr_SetString(PyExc_ValueError, "out: a scaled pixel is not made of these pixels");
    return found == FOUND;
}

static void release_all(Scaling *all) {
    free_taps(&all->down);
    free_taps(&all->across);
    free(all->sums);
    free(all->held);
    free(all->bytes);
}

#endif
