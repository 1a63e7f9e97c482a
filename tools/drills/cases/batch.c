/* Cases of the kernels that fill a batch: one-hot planes, rows, windows and pixels. */
#include "cases.h"

void onehot(Case *this) {
    int itemsize = 1 + (int)roll(this, 2);
    Py_ssize_t height = roll(this, 5), width = roll(this, 110);
    int classes = roll(this, 50) ? 1 + (int)roll(this, 9) : 250 + (int)roll(this, 9);
    Array *index = add_array(this, 2, 1, height, width, itemsize, 0);
    Array *out = add_array(this, 3, classes, height, width, 1, 1);
    int64_t most = roll(this, 2) ? classes + 2 : 1 << 8 * itemsize;
    for (Py_ssize_t y = 0; y < height; y++)
        for (Py_ssize_t x = 0; x < width; x++) {
            uint16_t number = (uint16_t)roll(this, most);
            if (itemsize == 1) number &= 255, *at(index, 0, y, x) = (uint8_t)number;
            else memcpy(at(index, 0, y, x), &number, 2);
            for (int c = 0; c < classes; c++) *expected_at(out, c, y, x) = number == c;
        }
}

void gather(Case *this) {
    int long_rows = roll(this, 100) == 0;
    Py_ssize_t size = long_rows ? 16000 + roll(this, 30000) : roll(this, 400), lengths[3];
    this->files = (int)roll(this, 4);
    for (int file = 0; file < this->files; file++) add_row(this, lengths[file] = size + roll(this, 300), 1, 0);
    this->rows = this->files ? (int)roll(this, MOST_ROWS + 1) : 0;
    Array *out = add_array(this, 2, 1, this->rows + roll(this, 3), size, 1, 1);
    Py_ssize_t spare = out->shape[1] - this->rows;
    for (Py_ssize_t n = 0, target = 0; n < this->rows; n++, target++) {
        if (spare && roll(this, 2)) target++, spare--;
        int file = (int)roll(this, this->files);
        this->row[n].file = file, this->row[n].start = roll(this, lengths[file] - size + 1), this->row[n].target = target;
        if (size) memcpy(expected_at(out, 0, target, 0), at(this->arrays + file, 0, 0, this->row[n].start), (size_t)size);
    }
    if (this->rows && roll(this, 20) == 0) {
        int n = (int)roll(this, this->rows), of_target = (int)roll(this, 2);
        int64_t outside = of_target ? out->shape[1] : lengths[this->row[n].file] - size + 1;
        int64_t wrong[] = {-1, outside, INT64_MAX, INT64_MIN, INT64_MAX - size, 1ll << 32};
        *(of_target ? &this->row[n].target : &this->row[n].start) = wrong[roll(this, 6)];
        this->refused = 1;
    }
}

void window(Case *this) {
    int itemsize = 1 + (int)roll(this, 2), large = roll(this, 20) == 0;
    Py_ssize_t planes = roll(this, 4), height = roll(this, large ? 40 : 7), width = roll(this, large ? 300 : 150);
    Array *pixels = add_array(this, 3, planes, height, width, itemsize, 0);
    Array *out = add_array(this, 3, planes, height, width, itemsize, 1);
    int flip = this->numbers[0] = (int)roll(this, 2);
    this->more = 1;
    for (Py_ssize_t plane = 0; plane < planes; plane++)
        for (Py_ssize_t y = 0; y < height; y++)
            for (Py_ssize_t x = 0; x < width; x++)
                memcpy(expected_at(out, plane, y, x), at(pixels, plane, y, flip ? width - 1 - x : x), (size_t)itemsize);
}

void planes(Case *this) {
    int large = roll(this, 20) == 0;
    Py_ssize_t height = roll(this, large ? 40 : 6), width = large && roll(this, 2) ? 32 * roll(this, 9) : roll(this, 150);
    Array *pixels = add_array(this, 2, 1, height, 3 * width, 1, 0);
    pixels->axes = 3;
    pixels->shape[0] = height, pixels->shape[1] = width, pixels->shape[2] = 3;
    pixels->strides[0] = pixels->strides[1], pixels->strides[1] = 3;
    Array *out = add_array(this, 3, 3, height, width, 1, 1);
    for (int c = 0; c < 3; c++)
        for (Py_ssize_t y = 0; y < height; y++)
            for (Py_ssize_t x = 0; x < width; x++) *expected_at(out, c, y, x) = *at(pixels, y, x, c);
}
