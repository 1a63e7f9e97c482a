/* The exact mean of the area that each target pixel covers, from pixels of interleaved channels into planes.

A side of `source` pixels shrinks to `target`. With both divided by their greatest divisor, a source pixel is `step` units
long and a target pixel `length` units. A target pixel covers its first source pixel by `head` units, its last by `tail`,
and those between whole. So a mean is a sum of byte * units * units, divided by total = length down * length across, and
rounded once, halves to even. docs/guide/sizes.md has this definition; every way to compute it gives the same bytes.

Lines are summed first: `down` adds the source lines of one target line, `across` then adds pixels and divides.
Everything here is in integers, for any CPU; area_avx2.h has faster ways. No number runs over: a side has at most 2^22
pixels, so a sum of lines is below 2^30 and total below 2^44. The quotient by a reciprocal of 55 bits is right or one too
small, because sum < 2^8 * total; the remainder shows which. */
#include "kernel.h"

#define MOST (1 << 22) /* pixels of a side */

/* `low` and `high`: the units of the first two pixels, and of the next two, as `across_narrow` takes them. */
typedef struct { Py_ssize_t first, count; uint32_t head, tail, low, high; } Span;
typedef struct { Py_ssize_t target, longest; uint32_t length, step; Span *spans; } Axis;

static int cut_axis(Axis *axis, Py_ssize_t source, Py_ssize_t target) {
    Py_ssize_t divisor = source, longest = 1;
    for (Py_ssize_t rest = target, next; rest; divisor = rest, rest = next) next = divisor % rest;
    int64_t length = source / divisor, step = target / divisor;
    Span *spans = malloc((size_t)target * sizeof *spans);
    for (Py_ssize_t j = 0; spans && j < target; j++) {
        int64_t begin = j * length, end = begin + length, first = begin / step, last = (end - 1) / step;
        uint32_t head = (uint32_t)(first == last ? length : (first + 1) * step - begin);
        uint32_t tail = (uint32_t)(first == last ? 0 : end - last * step), units[4] = {head};
        for (int64_t k = 1; k < 4 && k <= last - first; k++) units[k] = k == last - first ? tail : (uint32_t)step;
        spans[j] = (Span){first, last - first + 1, head, tail, units[0] | units[1] << 16, units[2] | units[3] << 16};
        if (longest < spans[j].count) longest = spans[j].count;
    }
    *axis = (Axis){target, longest, (uint32_t)length, (uint32_t)step, spans};
    return spans != NULL;
}

/* Sum the lines of a span. Whole lines are added in 16 bits, 256 at a time. */
static inline __attribute__((always_inline)) void down(uint32_t *restrict sums, uint16_t *restrict whole, const uint8_t *lines,
                                                       Py_ssize_t stride, Span span, uint16_t step, Py_ssize_t size) {
    const uint8_t *last = lines + (span.count - 1) * stride;
    uint16_t head = (uint16_t)span.head, tail = (uint16_t)span.tail;
    for (Py_ssize_t x = 0; x < size; x++) sums[x] = (uint32_t)lines[x] * head + (uint32_t)last[x] * tail;
    for (Py_ssize_t from = 1; from < span.count - 1; from += 256) {
        memset(whole, 0, (size_t)size * sizeof *whole);
        for (Py_ssize_t line = from; line < span.count - 1 && line < from + 256; line++)
            for (Py_ssize_t x = 0; x < size; x++) whole[x] += lines[line * stride + x];
        for (Py_ssize_t x = 0; x < size; x++) sums[x] += (uint32_t)whole[x] * step;
    }
}

#ifdef X86
#include "area_avx2.h"
#endif

/* Add the pixels of each span and divide. */
static inline __attribute__((always_inline)) void across(const uint32_t *sums, const Axis *axis, uint64_t total,
                                                         const int channels, uint8_t *out, Py_ssize_t plane) {
    const uint64_t reciprocal = ((uint64_t)1 << 55) / total;
    for (Py_ssize_t j = 0; j < axis->target; j++) {
        Span span = axis->spans[j];
        const uint32_t *pixel = sums + span.first * channels, *last = pixel + (span.count - 1) * channels;
        uint64_t sum[4], whole[4] = {0};
        for (int c = 0; c < channels; c++) sum[c] = (uint64_t)pixel[c] * span.head + (uint64_t)last[c] * span.tail;
        for (pixel += channels; pixel < last; pixel += channels)
            for (int c = 0; c < channels; c++) whole[c] += pixel[c];
        for (int c = 0; c < channels; c++) {
            sum[c] += whole[c] * axis->step;
            uint64_t mean = sum[c] * reciprocal >> 55, rest = sum[c] - mean * total, over = rest >= total;
            mean += over;
            rest = 2 * (rest - (total & -over));
            out[c * plane + j] = (uint8_t)(mean + (rest + (mean & 1) > total));
        }
    }
}

/* Return 0 if memory is short. Vectors load some numbers behind the end of a line, and do not use them. */
static int shrink(const Py_buffer *pixels, const Py_buffer *planes, int avx2) {
    Axis y = {0}, x = {0};
    Py_ssize_t channels = pixels->shape[2], size = channels * pixels->shape[1], stride = pixels->strides[0];
    int done = cut_axis(&y, pixels->shape[0], planes->shape[1]) & cut_axis(&x, pixels->shape[1], planes->shape[2]);
    uint64_t total = (uint64_t)y.length * x.length;
    uint32_t *sums = calloc((size_t)size + 16, sizeof *sums);
    uint16_t *whole = calloc((size_t)size + 16, sizeof *whole);
    done = done && sums && whole;
#ifdef X86
    int wide = avx2 && channels == 3 && x.target >= 8;
    int narrow = wide && y.length <= 128 && x.step < 1 << 15 && x.longest <= 4 && total < 1 << 16;
#endif
    for (Py_ssize_t i = 0; done && i < y.target; i++) {
        const uint8_t *lines = (const uint8_t *)pixels->buf + y.spans[i].first * stride;
        uint8_t *out = (uint8_t *)planes->buf + i * planes->strides[1];
        Py_ssize_t plane = planes->strides[0];
#ifdef X86
        if (narrow) down_narrow(whole, lines, stride, y.spans[i], (uint16_t)y.step, size);
        else if (wide) down_avx2(sums, whole, lines, stride, y.spans[i], (uint16_t)y.step, size);
        if (narrow) across_narrow(whole, &x, (float)total, out, plane);
        else if (wide) across_wide(sums, &x, (double)total, out, plane);
        if (wide) continue;
#endif
        down(sums, whole, lines, stride, y.spans[i], (uint16_t)y.step, size);
        if (channels == 3) across(sums, &x, total, 3, out, plane);
        else across(sums, &x, total, (int)channels, out, plane);
    }
    free(y.spans), free(x.spans), free(sums), free(whole);
    return done;
}

static PyObject *area_mean(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *planes_object, *result = NULL;
    Py_buffer pixels, planes;
    if (!PyArg_ParseTuple(arguments, "OO", &pixels_object, &planes_object)) return NULL;
    if (!get_array(pixels_object, &pixels, 3, 1, 0, "pixels")) return NULL;
    if (get_array(planes_object, &planes, 3, 1, 1, "planes")) {
        const Py_ssize_t *from = pixels.shape, *to = planes.shape;
        if (to[0] != from[2] || to[0] < 1 || to[0] > 4 || to[1] < 1 || to[2] < 1 || to[1] > from[0] || to[2] > from[1] ||
            from[0] > MOST || from[1] > MOST || to[1] > UINT16_MAX || (from[1] > 1 && pixels.strides[1] != from[2])) {
            PyErr_SetString(PyExc_ValueError, "planes: expected 1 to 4, as many as channels, and sides that do not grow");
        } else if (are_apart(&planes, &pixels)) {
            int done, avx2 = has_avx2();
            Py_BEGIN_ALLOW_THREADS
            done = shrink(&pixels, &planes, avx2);
            Py_END_ALLOW_THREADS
            result = done ? Py_NewRef(Py_None) : PyErr_NoMemory();
        }
        PyBuffer_Release(&planes);
    }
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"area_mean", area_mean, METH_VARARGS, "area_mean(pixels, planes): shrink (H, W, C) bytes to (C, h, w) bytes."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(area_kernel, "The exact mean of areas, from interleaved channels into planes.", functions)
