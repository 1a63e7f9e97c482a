/* Cases of the kernels for PNGs and labels. */
#include "cases.h"

static int nearest(int left, int above, int corner) {
    int guess = left + above - corner, by_left = abs(guess - left), by_above = abs(guess - above), by_corner = abs(guess - corner);
    return by_left <= by_above && by_left <= by_corner ? left : by_above <= by_corner ? above : corner;
}

/* Undo the filters byte by byte in `lines`, of `size` and the filter each. Return how many have a filter that exists. */
static Py_ssize_t unfiltered(uint8_t *lines, Py_ssize_t height, Py_ssize_t size, int pixel) {
    for (Py_ssize_t y = 0; y < height; y++) {
        uint8_t *line = lines + y * (size + 1) + 1, *before = y ? line - size - 1 : NULL;
        if (line[-1] > 4) return y;
        for (Py_ssize_t x = 0; x < size; x++) {
            int left = x < pixel ? 0 : line[x - pixel], above = before ? before[x] : 0, corner = x < pixel || !before ? 0 : before[x - pixel];
            int guesses[] = {0, left, above, (left + above) / 2, nearest(left, above, corner)};
            line[x] = (uint8_t)(line[x] + guesses[line[-1]]);
        }
    }
    return height;
}

void unfilter(Case *this) {
    static const int depths[] = {1, 2, 4, 8};
    int pixel = 1 + (int)roll(this, 4), depth = pixel == 1 ? depths[roll(this, 4)] : 8;
    Py_ssize_t height = roll(this, 5), width = roll(this, roll(this, 8) ? 24 : 90) * pixel, size = (width * depth + 7) / 8;
    static const int changes[] = {0, 0, 0, 0, 0, 0, 1, -1, 3};
    Py_ssize_t length = height * (size + 1) + changes[roll(this, 9)]; /* a stream that was cut, or is too long */
    if (length < 0) length = 0;
    Array *stream = add_row(this, length, 1, 0), *out = add_array(this, 2, 1, height, width, 1, 1);
    this->numbers[0] = depth, this->numbers[1] = pixel, this->more = 2;
    this->refused = length != height * (size + 1);
    this->result = 1;
    if (this->refused || !height) return;
    int64_t filter = roll(this, 6), flipped = roll(this, 10) ? -1 : roll(this, length);
    for (Py_ssize_t y = 0; y < height; y++) *at(stream, 0, 0, y * (size + 1)) = (uint8_t)(filter < 5 ? filter : roll(this, 5));
    if (flipped >= 0) *at(stream, 0, 0, flipped) ^= (uint8_t)(1 << roll(this, 8));
    uint8_t *lines = malloc((size_t)length);
    if (!lines) abort();
    memcpy(lines, stream->first, (size_t)length);
    Py_ssize_t right = unfiltered(lines, height, size, pixel);
    this->result = right == height;
    for (Py_ssize_t y = 0; y < right; y++)
        for (Py_ssize_t x = 0; x < width; x++) {
            uint8_t byte = lines[y * (size + 1) + 1 + x * depth / 8];
            *expected_at(out, 0, y, x) = (uint8_t)(byte >> (8 - depth - x * depth % 8) & ((1 << depth) - 1));
        }
    free(lines);
}

void numbers(Case *this) {
    Array *pixels = add_array(this, 2, 1, roll(this, 5), roll(this, 90), 1, 0), *occurs = add_row(this, 256, 1, 1);
    if (roll(this, 4)) fill_with_runs(this, pixels);
    memset(expected_at(occurs, 0, 0, 0), 0, 256);
    for (Py_ssize_t y = 0; y < pixels->shape[1]; y++)
        for (Py_ssize_t x = 0; x < pixels->shape[2]; x++) *expected_at(occurs, 0, 0, *at(pixels, 0, y, x)) = 1;
}

void colours(Case *this) {
    Py_ssize_t height = roll(this, 5), width = roll(this, 90);
    Array *runs = add_array(this, 2, 1, height, width, 1, 0);
    fill_with_runs(this, runs);
    Array numbers = *runs;
    this->count = 0;
    Array *pixels = add_array(this, 2, 1, height, 3 * width, 1, 0), *out = add_array(this, 2, 1, height, width, 1, 1);
    Array *palette = add_row(this, 768, 1, 1);
    int any = roll(this, 10) == 0, count = 0, factor = 1 + 2 * (int)roll(this, 99);
    for (Py_ssize_t y = 0; y < height && count >= 0; y++)
        for (Py_ssize_t x = 0; x < width && count >= 0; x++) {
            uint8_t *pixel = at(pixels, 0, y, 3 * x), number = *at(&numbers, 0, y, x);
            if (!any) pixel[0] = number, pixel[1] = (uint8_t)(number * factor), pixel[2] = (uint8_t)(number >> 3);
            int found = 0;
            while (found < count && memcmp(expected_at(palette, 0, 0, 3 * found), pixel, 3)) found++;
            if (found == 256) count = -1;
            else if (found == count) memcpy(expected_at(palette, 0, 0, 3 * count++), pixel, 3);
            *expected_at(out, 0, y, x) = (uint8_t)found;
        }
    free(numbers.memory), free(numbers.expected);
    this->result = count;
    this->partial = count < 0;
}

void sample(Case *this) {
    Py_ssize_t height = 1 + roll(this, 6), width = 1 + roll(this, 60), tall = roll(this, 7), wide = roll(this, 70);
    Array *numbers = add_array(this, 2, 1, height, width, 1, 0), *table = add_row(this, 256, 1, 0);
    if (roll(this, 4)) fill_with_runs(this, numbers);
    Array *rows = add_row(this, tall, 8, 0), *columns = add_row(this, wide, 8, 0);
    Array *out = add_array(this, 2, 1, tall, wide, 1, 1), *counts = add_row(this, 256, 8, 1);
    memset(expected_at(counts, 0, 0, 0), 0, 256 * 8);
    for (Py_ssize_t y = 0; y < tall; y++) put_number(rows, y, y && roll(this, 3) == 0 ? number_of(rows, y - 1) : roll(this, height));
    for (Py_ssize_t x = 0; x < wide; x++) put_number(columns, x, roll(this, width));
    for (Py_ssize_t y = 0; y < tall; y++)
        for (Py_ssize_t x = 0; x < wide; x++) {
            uint8_t class = *at(table, 0, 0, *at(numbers, 0, number_of(rows, y), number_of(columns, x)));
            int64_t count;
            memcpy(&count, expected_at(counts, 0, 0, class), 8);
            count++;
            memcpy(expected_at(counts, 0, 0, class), &count, 8);
            *expected_at(out, 0, y, x) = class;
        }
    if (tall && wide && roll(this, 20) == 0) {
        int of_column = (int)roll(this, 2);
        int64_t wrong[] = {-1, of_column ? width : height, INT64_MAX, INT64_MIN, 1ll << 32};
        put_number(of_column ? columns : rows, roll(this, of_column ? wide : tall), wrong[roll(this, 5)]);
        this->refused = 1;
    }
}
