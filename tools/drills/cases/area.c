/* Cases of the area mean: every source pixel is weighed by the units that it shares with the target pixel. */
#include "cases.h"

/* Return what pixel `from` shares with target pixel `to`, if a source pixel is `target` long, a target pixel `source`. */
static int64_t shared(int64_t from, int64_t to, int64_t source, int64_t target) {
    int64_t begin = from * target > to * source ? from * target : to * source;
    int64_t end = (from + 1) * target < (to + 1) * source ? (from + 1) * target : (to + 1) * source;
    return end > begin ? end - begin : 0;
}

static uint8_t mean(const Array *pixels, Py_ssize_t y, Py_ssize_t x, int channel, Py_ssize_t tall, Py_ssize_t wide) {
    Py_ssize_t height = pixels->shape[0], width = pixels->shape[1];
    int64_t sum = 0, total = height * width;
    for (Py_ssize_t line = y * height / tall; line < height && line * tall < (y + 1) * height; line++) {
        int64_t part = 0;
        for (Py_ssize_t column = x * width / wide; column < width && column * wide < (x + 1) * width; column++)
            part += *at(pixels, line, column, channel) * shared(column, x, width, wide);
        sum += part * shared(line, y, height, tall);
    }
    int64_t rounded = sum / total, rest = 2 * (sum % total);
    return (uint8_t)(rounded + (rest > total || (rest == total && rounded % 2)));
}

void area(Case *this) {
    Py_ssize_t most = roll(this, 3) ? 9 : 34, sides[2] = {1 + roll(this, most), 1 + roll(this, most)}, target[2];
    if (roll(this, 100) == 0) sides[roll(this, 2)] = 40 + roll(this, 1500);
    if (roll(this, 3000) == 0) sides[roll(this, 2)] = 1 << 16, sides[roll(this, 2)] = 1 + roll(this, 3);
    for (int axis = 0; axis < 2; axis++) target[axis] = roll(this, 5) ? 1 + roll(this, sides[axis]) : sides[axis];
    int channels = roll(this, 3) ? 3 : 1 + (int)roll(this, 4);
    Array *pixels = add_array(this, 2, 1, sides[0], sides[1] * channels, 1, 0);
    pixels->axes = 3;
    pixels->shape[0] = sides[0], pixels->shape[1] = sides[1], pixels->shape[2] = channels;
    pixels->strides[0] = pixels->strides[1], pixels->strides[1] = channels;
    Array *planes = add_array(this, 3, channels, target[0], target[1], 1, 1);
    static const uint8_t kept[] = {255, 255, 128, 1}, added[] = {0, 0, 127, 254};
    int kind = (int)roll(this, 5); /* any bytes, or two of them, which make halves; at last all of 255 */
    for (Py_ssize_t y = 0; y < sides[0]; y++)
        for (Py_ssize_t x = 0; x < sides[1] * channels; x++) {
            uint8_t *byte = at(pixels, y, 0, x);
            *byte = kind == 4 ? 255 : (uint8_t)((*byte & kept[kind]) | added[kind]);
        }
    if (target[0] > UINT16_MAX) this->refused = 1;
    for (int c = 0; c < channels && !this->refused; c++)
        for (Py_ssize_t y = 0; y < target[0]; y++)
            for (Py_ssize_t x = 0; x < target[1]; x++) *expected_at(planes, c, y, x) = mean(pixels, y, x, c, target[0], target[1]);
}
