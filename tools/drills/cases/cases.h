/* What all random cases share: dice, arrays in memory of exactly their size, and the call to come.

A case function adds the arrays of one call, fills them, and writes what the kernel should make of them into `expected`,
with loops as plain as can be. run.c makes the call and compares; spoil.c makes some calls wrong before. */
#ifndef DRILL_CASES_H
#define DRILL_CASES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UNTOUCHED = 77, MOST_ARRAYS = 6, MOST_ROWS = 6 };

/* Three axes, of which the last `axes` exist; the others have a length of 1. Unless spoilt, the last item ends where the
   memory ends, so that a byte too far is found. */
typedef struct {
    int axes, itemsize, writable;
    const char *format;
    Py_ssize_t shape[3], strides[3];
    uint8_t *memory, *first, *expected; /* `expected`: all of the memory after the call */
    size_t size;
} Array;

typedef struct {
    uint64_t dice;
    int count;            /* of arrays */
    int numbers[2], more; /* arguments behind the arrays */
    int files, rows;      /* of `gather`: the first arrays are files, and rows of them go to the last */
    struct { int file; int64_t start, target; } row[MOST_ROWS];
    int refused;          /* the call must fail */
    int unsure;           /* the call may fail, and if not its result is not known */
    int partial;          /* what is written is not known */
    long result;          /* -2: None */
    Array arrays[MOST_ARRAYS];
} Case;

/* Return a random number below `count`, by the generator splitmix64. */
static inline int64_t roll(Case *this, int64_t count) {
    uint64_t z = (this->dice += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (int64_t)((z ^ z >> 31) % (uint64_t)count);
}

static inline uint8_t *at(const Array *array, Py_ssize_t plane, Py_ssize_t y, Py_ssize_t x) {
    return array->first + plane * array->strides[0] + y * array->strides[1] + x * array->strides[2];
}

static inline uint8_t *expected_at(const Array *array, Py_ssize_t plane, Py_ssize_t y, Py_ssize_t x) {
    return array->expected + (at(array, plane, y, x) - array->memory);
}

/* Add an array with random bytes, or full of UNTOUCHED if it is written. Half of them have gaps between their lines. */
Array *add_array(Case *this, int axes, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, int itemsize, int writable);
/* The same with one axis. Items of 8 bytes are numbers, put and taken by the next two. */
Array *add_row(Case *this, Py_ssize_t length, int itemsize, int writable);
void put_number(Array *row, Py_ssize_t index, int64_t number);
int64_t number_of(const Array *row, Py_ssize_t index);
/* Fill lines with runs of a few numbers. */
void fill_with_runs(Case *this, Array *lines);
/* Allocate memory of a size with any alignment, the end of which is the end of an allocation. */
uint8_t *exact(Case *this, size_t size, size_t alignment, uint8_t **first);
/* Turn a correct call into one that should be refused. */
void spoil(Case *this);

typedef void CaseFunction(Case *);
CaseFunction onehot, gather, window, planes, area, unfilter, numbers, colours, sample;

#endif
