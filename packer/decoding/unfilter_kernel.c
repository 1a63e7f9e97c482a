/* Undo the filters of an inflated PNG, and give each number a byte.

A line begins with the number of its filter: what was subtracted from each of its bytes.

    0 nothing    1 the byte on its left    2 the byte above    3 the mean of these two, rounded down
    4 of left, above and corner (the byte above left), that which is nearest to left + above - corner

Left is one pixel back, so a line is filtered channel by channel. Outside of the picture bytes are 0. Sums wrap at 256.

A line with filter 1 is a running sum. Byte by byte, each sum waits for the one before. Instead 16 bytes are taken at once:
adding them to themselves, moved by 1 pixel, then by 2, by 4 and by 8, gives the running sums of these 16. Only the last
pixel of the 16 before is still missing in all.

The stream is only read. Its length and the filters are checked, so damage ends with a refusal. */
#include "kernel.h"

enum { NONE, SUB, UP, AVERAGE, PAETH, FILTERS };

static inline int nearest(int left, int above, int corner) {
    int from_left = abs(above - corner), from_above = abs(left - corner), from_corner = abs(left + above - 2 * corner);
    int best = from_above < from_left ? above : left, least = from_above < from_left ? from_above : from_left;
    return from_corner < least ? corner : best;
}

/* Undo a filter that needs the pixel on the left. It is called with constants, so that the compiler keeps that in registers. */
static inline void undo(int filter, int pixel, uint8_t *restrict out, const uint8_t *line, const uint8_t *above, Py_ssize_t size) {
    int left[4] = {0}, corner[4] = {0};
    for (Py_ssize_t x = 0; x < size; x += pixel)
        for (int c = 0; c < pixel; c++) {
            int up = above[x + c], guess = left[c];
            if (filter == AVERAGE) guess = (guess + up) >> 1;
            if (filter == PAETH) guess = nearest(guess, up, corner[c]);
            out[x + c] = (uint8_t)(left[c] = (line[x + c] + guess) & 255);
            corner[c] = up;
        }
}

static inline void undo_for(int pixel, int filter, uint8_t *out, const uint8_t *line, const uint8_t *above, Py_ssize_t size) {
    if (filter == SUB) undo(SUB, pixel, out, line, above, size);
    if (filter == AVERAGE) undo(AVERAGE, pixel, out, line, above, size);
    if (filter == PAETH) undo(PAETH, pixel, out, line, above, size);
}

#ifdef X86
/* Undo filter 1, sixteen bytes at once. */
AVX2 static void undo_sub(int pixel, uint8_t *out, const uint8_t *line, Py_ssize_t size) {
    int8_t moves[4][16], last[16];
    for (int i = 0; i < 16; i++) {
        for (int step = 0; step < 4; step++) moves[step][i] = (int8_t)(i - (pixel << step)); /* below 0: a byte of 0 */
        last[i] = (int8_t)(16 - pixel + i % pixel);
    }
    __m128i move[4], before = _mm_setzero_si128(), take_last = _mm_loadu_si128((const __m128i *)last);
    for (int step = 0; step < 4; step++) move[step] = _mm_loadu_si128((const __m128i *)moves[step]);
    Py_ssize_t x = 0;
    for (; x + 16 <= size; x += 16) {
        __m128i sums = _mm_loadu_si128((const __m128i *)(line + x));
        for (int step = 0; step < 4; step++) sums = _mm_add_epi8(sums, _mm_shuffle_epi8(sums, move[step]));
        sums = _mm_add_epi8(sums, before);
        _mm_storeu_si128((__m128i *)(out + x), sums);
        before = _mm_shuffle_epi8(sums, take_last);
    }
    for (; x < size; x++) out[x] = (uint8_t)(line[x] + (x < pixel ? 0 : out[x - pixel]));
}

AVX2 static inline __m128i four_bytes(const uint8_t *from) {
    int bytes;
    memcpy(&bytes, from, 4);
    return _mm_cvtepu8_epi16(_mm_cvtsi32_si128(bytes));
}

/* Undo filter 4 of pixels with 3 or 4 bytes, all bytes of a pixel at once. The fourth of 3 belongs to the next pixel. */
AVX2 static void undo_paeth(int pixel, uint8_t *out, const uint8_t *line, const uint8_t *above, Py_ssize_t size) {
    __m128i left = _mm_setzero_si128(), corner = left, low = _mm_set1_epi16(255);
    Py_ssize_t x = 0;
    for (; x + 4 <= size; x += pixel) {
        __m128i up = four_bytes(above + x), left_step = _mm_sub_epi16(up, corner), up_step = _mm_sub_epi16(left, corner);
        __m128i from_left = _mm_abs_epi16(left_step), from_up = _mm_abs_epi16(up_step);
        __m128i from_corner = _mm_abs_epi16(_mm_add_epi16(left_step, up_step));
        __m128i least = _mm_min_epi16(from_corner, _mm_min_epi16(from_left, from_up));
        __m128i best = _mm_blendv_epi8(corner, up, _mm_cmpeq_epi16(least, from_up));
        best = _mm_blendv_epi8(best, left, _mm_cmpeq_epi16(least, from_left));
        left = _mm_and_si128(_mm_add_epi16(four_bytes(line + x), best), low);
        int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(left, left));
        memcpy(out + x, &bytes, 4);
        corner = up;
    }
    for (; x < size; x++) {
        int first = x < pixel;
        out[x] = (uint8_t)(line[x] + nearest(first ? 0 : out[x - pixel], above[x], first ? 0 : above[x - pixel]));
    }
}
#endif

static void undo_line(int pixel, int filter, uint8_t *restrict out, const uint8_t *line, const uint8_t *above, Py_ssize_t size, int avx2) {
    if (filter == NONE) memcpy(out, line, (size_t)size);
    else if (filter == UP) for (Py_ssize_t x = 0; x < size; x++) out[x] = line[x] + above[x];
#ifdef X86
    else if (filter == SUB && avx2) undo_sub(pixel, out, line, size);
    else if (filter == PAETH && avx2 && pixel >= 3) undo_paeth(pixel, out, line, above, size);
#endif
    else if (pixel == 1) undo_for(1, filter, out, line, above, size);
    else if (pixel == 2) undo_for(2, filter, out, line, above, size);
    else if (pixel == 3) undo_for(3, filter, out, line, above, size);
    else undo_for(4, filter, out, line, above, size);
}

/* Give each number of a line its own byte, by a table of the numbers in each possible byte. */
static void spread_line(uint8_t *out, const uint8_t *line, Py_ssize_t width, uint8_t spread[256][8], Py_ssize_t in_byte) {
    Py_ssize_t x = 0;
    for (; x + 8 <= width; x += in_byte) memcpy(out + x, spread[*line++], 8); /* those too many are overwritten */
    for (; x < width; x += in_byte) memcpy(out + x, spread[*line++], (size_t)(width - x < in_byte ? width - x : in_byte));
}

/* Return 0 if a line has a filter that does not exist. `lines` is room for two lines of `size` bytes, the first of zeros. */
static int undo_all(const uint8_t *stream, const Py_buffer *out, Py_ssize_t size, int depth, int pixel, uint8_t *lines) {
    const uint8_t *above = lines;
    uint8_t spread[256][8];
    int avx2 = has_avx2(), in_byte = 8 / depth;
    for (int byte = 0; byte < 256; byte++)
        for (int k = 0; k < in_byte; k++) spread[byte][k] = (uint8_t)(byte << k * depth) >> (8 - depth);
    for (Py_ssize_t y = 0; y < out->shape[0]; y++, stream += size + 1) {
        uint8_t *pixels = (uint8_t *)out->buf + y * out->strides[0];
        if (stream[0] >= FILTERS) return 0;
        uint8_t *target = depth == 8 ? pixels : lines + (y + 1) % 2 * size;
        undo_line(pixel, stream[0], target, stream + 1, above, size, avx2);
        if (depth < 8) spread_line(pixels, target, out->shape[1], spread, in_byte);
        above = target;
    }
    return 1;
}

static PyObject *unfilter(PyObject *module, PyObject *arguments) {
    PyObject *stream_object, *out_object, *result = NULL;
    Py_buffer stream, out;
    int depth, pixel, done;
    if (!PyArg_ParseTuple(arguments, "OOii", &stream_object, &out_object, &depth, &pixel)) return NULL;
    if (!(depth == 8 && pixel >= 1 && pixel <= 4) && !(pixel == 1 && (depth == 1 || depth == 2 || depth == 4)))
        return PyErr_Format(PyExc_ValueError, "no PNG has pixels of %d bytes with numbers of %d bits", pixel, depth);
    if (!get_array(stream_object, &stream, 1, 1, 0, "stream")) return NULL;
    if (!get_array(out_object, &out, 2, 1, 1, "out")) goto release_stream;
    Py_ssize_t height = out.shape[0], width = out.shape[1], size = width / 8 * depth + (width % 8 * depth + 7) / 8;
    if (width > PY_SSIZE_T_MAX / 8 || width % pixel || stream.shape[0] % (size + 1) || stream.shape[0] / (size + 1) != height) {
        PyErr_SetString(PyExc_ValueError, "stream: has not the length of the lines");
        goto release_out;
    }
    uint8_t *lines = are_apart(&out, &stream) ? calloc(2, height ? (size_t)size + 1 : 1) : NULL;
    if (!lines) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        goto release_out;
    }
    Py_BEGIN_ALLOW_THREADS
    done = undo_all(stream.buf, &out, size, depth, pixel, lines);
    Py_END_ALLOW_THREADS
    free(lines);
    result = PyBool_FromLong(done);
release_out:
    PyBuffer_Release(&out);
release_stream:
    PyBuffer_Release(&stream);
    return result;
}

static PyMethodDef functions[] = {
    {"unfilter", unfilter, METH_VARARGS,
     "unfilter(stream, out, depth, pixel): write the numbers of the inflated lines to (H, numbers in a line) bytes. They have "
     "`depth` bits, a pixel has `pixel` bytes. False if a filter does not exist."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(unfilter_kernel, "Undo the filters of a PNG.", functions)
