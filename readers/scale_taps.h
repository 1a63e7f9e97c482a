/* The pixels that scaled ones are made of. Only scale_lines.h includes it.

A side of S pixels becomes D. Pixel i of the scaled side lies at n = (2i+1) * S - D, in units of 1 / 2D pixels: between the
pixels n / 2D and the next one, whose weight is n % 2D, rounded to 256ths. The nearest pixel is (2i+1) * S / 2D. */
#ifndef SEGPACK_SCALE_TAPS_H
#define SEGPACK_SCALE_TAPS_H

#include "kernel.h"

#define GROUP 16 /* columns that are made together, in two halves */
#define HALF 8
#define LOADED 16 /* pixels that one shuffle chooses from */

typedef struct {
    int64_t source, scaled; /* the whole side, before and after */
    int64_t start;          /* the first scaled pixel that is wanted */
    int64_t offset;         /* the source pixel that is the first of the part */
} Side;

static int read_side(PyObject *object, Side *side) {
    long long numbers[4];
    if (!PyArg_ParseTuple(object, "LLLL", numbers, numbers + 1, numbers + 2, numbers + 3)) return 0;
    *side = (Side){numbers[0], numbers[1], numbers[2], numbers[3]};
    const int64_t most = INT32_MAX;
    if (side->source >= 1 && side->source <= most && side->scaled >= 1 && side->scaled <= most && side->start >= 0 &&
        side->start <= most && side->offset >= 0 && side->offset <= most) return 1;
    PyErr_SetString(PyExc_ValueError, "a side: expected its pixels, its scaled pixels, and where both begin");
    return 0;
}

typedef struct {
    int32_t *first;    /* the first of two pixels, in the part */
    uint16_t *weights; /* of the second, in parts of 256 */
    int32_t *base;     /* where the pixels of each half of a group are loaded from */
    uint8_t *chosen;   /* the bytes of a group that are chosen of these: two for each column, or with nearest one */
    Py_ssize_t fast;   /* the columns before this are made of groups whose pixels can be loaded at once */
} Taps; /* of the lines or columns of a window */

/* Get memory for these. Return 0 if there is none. */
static int get_taps(Taps *taps, Py_ssize_t count) {
    const size_t many = (size_t)count + GROUP;
    taps->first = malloc(many * sizeof(int32_t)), taps->weights = malloc(many * sizeof(uint16_t));
    taps->base = malloc(many * sizeof(int32_t)), taps->chosen = malloc(2 * many);
    return taps->first && taps->weights && taps->base && taps->chosen;
}

static void free_taps(Taps *taps) {
    free(taps->first);
    free(taps->weights);
    free(taps->base);
    free(taps->chosen);
}

/* Fill in the pixels of `count` scaled ones, backwards if `flip`. Return 0 if one of them is not in the part.

Each n is 2S more than the one before, so only the first is divided. A weight is divided as a double: both numbers are less than
2^41, so no quotient below a whole number is rounded up to it. */
static int find_taps(Taps *taps, const Side *side, Py_ssize_t count, Py_ssize_t part, int flip, int is_nearest) {
    const int64_t units = 2 * side->scaled, step = 2 * side->source, last = side->source - 2, more = step / units, over = step % units;
    if (count && side->start + count > side->scaled) return 0; /* so no product is too large */
    const int64_t n = (2 * side->start + 1) * side->source - (is_nearest ? 0 : side->scaled);
    int64_t whole = n < 0 ? -1 : n / units, rest = n < 0 ? n + units : n % units; /* n is at least -D */
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t first = whole, weight = 0;
        if (!is_nearest) {
            weight = (int64_t)((double)(rest * 256 + side->scaled) / (double)units);
            if (whole < 0) first = weight = 0;
            if (first > last) first = last, weight = 256;
        }
        first -= side->offset;
        if (first < 0 || first + !is_nearest >= part) return 0;
        const Py_ssize_t x = flip ? count - 1 - i : i;
        taps->first[x] = (int32_t)first;
        taps->weights[x] = (uint16_t)weight;
        whole += more, rest += over;
        if (rest >= units) whole++, rest -= units;
    }
    return 1;
}

/* Find what is loaded for halves of groups. `pixels`: those that a column is made of. */
static void find_groups(Taps *taps, Py_ssize_t count, Py_ssize_t part, int pixels) {
    taps->fast = 0;
    for (Py_ssize_t x = 0; x + GROUP <= count && taps->fast == x; x += GROUP) {
        int fits = part >= LOADED;
        for (Py_ssize_t from = x; from < x + GROUP; from += HALF) {
            const int32_t one = taps->first[from], two = taps->first[from + HALF - 1];
            int32_t base = one < two ? one : two; /* they ascend or descend */
            if (base > part - LOADED) base = (int32_t)(part - LOADED);
            taps->base[from / HALF] = base;
            fits = fits && (one > two ? one : two) + pixels - base <= LOADED;
            for (int i = 0; fits && i < HALF * pixels; i++)
                taps->chosen[pixels * from + i] = (uint8_t)(taps->first[from + i / pixels] + i % pixels - base);
        }
        if (fits) taps->fast = x + GROUP;
    }
}

#endif
