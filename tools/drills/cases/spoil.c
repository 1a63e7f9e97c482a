/* Calls that nobody should make. What is wrong with one is either certain to be refused, or must only do no harm.

The memory still is what the arrays claim, so that whatever a sanitizer finds is the kernel's fault. */
#include "cases.h"

enum { AXES, READ_ONLY, ORDER, KIND, ITEMS, UNALIGNED, BACKWARDS, LAST_GAP, LINES_OVERLAP, SHARED, LENGTH, HUGE_EMPTY, WAYS };

/* Take new memory for the shape and the size of items, with `gap` bytes behind each. Keep the items if they are `kept`. */
static void take_memory(Case *this, Array *array, int gap, int shift, int kept) {
    Array old = *array;
    Py_ssize_t step = array->itemsize + gap, *shape = array->shape, *strides = array->strides;
    strides[2] = step, strides[1] = shape[2] * step, strides[0] = shape[1] * strides[1];
    size_t size = (size_t)(shape[0] * strides[0]) + (size_t)shift;
    array->memory = exact(this, size, 8, &array->first);
    array->first += shift;
    array->size = (size_t)(array->first - array->memory) + size - (size_t)shift;
    array->expected = malloc(array->size + 1);
    if (!array->expected) abort();
    for (uint8_t *byte = array->memory; byte < array->memory + array->size; byte++) *byte = (uint8_t)roll(this, 3);
    for (Py_ssize_t plane = 0; kept && plane < shape[0]; plane++)
        for (Py_ssize_t y = 0; y < shape[1]; y++)
            for (Py_ssize_t x = 0; x < shape[2]; x++) memcpy(at(array, plane, y, x), at(&old, plane, y, x), (size_t)array->itemsize);
    memcpy(array->expected, array->memory, array->size);
    free(old.memory), free(old.expected);
}

/* Let what is written begin before the end of an array that is read. */
static int share(Case *this, Array *written) {
    Array *read = this->arrays + roll(this, this->count);
    if (read->writable || !written->writable || read->first == read->memory + read->size) return 0;
    size_t used = written->size - (size_t)(written->first - written->memory), place = read->size - 1;
    if (!used) return 0;
    place = (size_t)(read->first - read->memory) + (size_t)roll(this, (int64_t)(place - (size_t)(read->first - read->memory) + 1));
    place = place / 8 * 8;
    if (place < (size_t)(read->first - read->memory)) return 0;
    size_t size = place + used > read->size ? place + used : read->size, lead = (size_t)(read->first - read->memory);
    uint8_t *memory = malloc(size), *expected = malloc(size);
    if (!memory || !expected) abort();
    memset(memory, UNTOUCHED, size);
    memcpy(memory, read->memory, read->size);
    free(read->memory), free(read->expected), free(written->memory), free(written->expected);
    read->memory = memory, read->first = memory + lead, read->size = size, read->expected = expected;
    written->memory = written->expected = NULL, written->first = memory + place, written->size = 0;
    return 1;
}

static void empty(Case *this) {
    static const int powers[] = {17, 40, 45};
    int zero = (int)roll(this, 3), power = powers[roll(this, 3)];
    for (Array *array = this->arrays; array < this->arrays + this->count; array++) {
        if (array->axes == 1) continue;
        for (int axis = 3 - array->axes; axis < 3; axis++) array->shape[axis] *= axis == zero ? 0 : (Py_ssize_t)1 << power;
        array->strides[2] = array->itemsize, array->strides[1] = array->strides[0] = 1 << 10;
        if (3 - array->axes > zero) array->shape[1] = 0;
    }
}

void spoil(Case *this) {
    Array *array = this->arrays + roll(this, this->count);
    int way = (int)roll(this, WAYS), axis = 3 - array->axes + (int)roll(this, array->axes);
    int certain = 1, inner = axis < 2 && array->shape[axis] > 1;
    int items = array->shape[0] && array->shape[1] && array->shape[2];
    if (way == AXES) array->axes = array->axes == 1 ? 2 : array->axes - 1;
    else if (way == READ_ONLY && array->writable) array->writable = 0;
    else if (way == ORDER && array->itemsize > 1) array->format = array->itemsize == 8 ? ">q" : ">H";
    else if (way == KIND && array->itemsize == 8) array->format = "d";
    else if (way == ITEMS) array->itemsize = 4, array->format = "i", take_memory(this, array, 0, 0, 0);
    else if (way == UNALIGNED && array->itemsize == 8) take_memory(this, array, 0, 1 + (int)roll(this, 7), 1);
    else if (way == BACKWARDS && inner && items) {
        array->first += (array->shape[axis] - 1) * array->strides[axis];
        array->strides[axis] *= -1;
    } else if (way == LAST_GAP && array->shape[2] > 1 && items) take_memory(this, array, array->itemsize, 0, 1);
    else if (way == LINES_OVERLAP && array->writable && inner && items && axis == 1)
        array->strides[1] = roll(this, array->shape[2]) * array->itemsize;
    else if (way == SHARED && share(this, array)) certain = 1;
    else if (way == LENGTH) {
        certain = 0;
        array->shape[axis] += array->shape[axis] && roll(this, 2) ? -1 : 1;
        take_memory(this, array, 0, 0, 0);
    } else if (way == HUGE_EMPTY) certain = 0, empty(this);
    else return;
    this->refused |= certain;
    this->unsure |= !certain;
    if (!certain) this->refused = 0;
}
