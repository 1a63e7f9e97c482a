/* Find the numbers or colours that occur in a label, so that each of them is judged once and not at every pixel.

A label has few numbers or colours, in long runs. Numbers are marked in a table of 256, eight equal ones at once.

Colours are numbered in the order in which they come: a picture of colours becomes a picture of numbers with a palette of
at most 256. Equal pixels that follow each other cost one look: as long as each byte equals the byte three before it, the
colour goes on. A new colour is looked for in a hash table whose places are tried one after the other. It has four times
as many places as colours, so an empty one is near. */
#include "kernel.h"

#define MOST 256
#define PLACES 1024

typedef struct {
    uint32_t codes[PLACES]; /* red, green, blue, and a fourth byte of 1 where a place is taken */
    uint8_t numbers[PLACES];
    int count;
} Palette;

static uint64_t eight(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

/* Return where the bytes cease to equal those three before them; `end` if they do not. */
static Py_ssize_t end_of_colour(const uint8_t *line, Py_ssize_t from, Py_ssize_t end) {
    for (; from + 8 <= end; from += 8) {
        uint64_t differ = eight(line + from) ^ eight(line + from - 3);
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (differ) return from + __builtin_ctzll(differ) / 8;
#else
        if (differ) break;
#endif
    }
    while (from < end && line[from] == line[from - 3]) from++;
    return from;
}

/* Return the number of a colour, which is added if it is new; -1 if there are too many. */
static int number_of(Palette *palette, uint32_t code, uint8_t *colours) {
    uint32_t place = (code * 0x9E3779B1u) >> 22;
    while (palette->codes[place]) {
        if (palette->codes[place] == code) return palette->numbers[place];
        place = (place + 1) % PLACES;
    }
    if (palette->count == MOST) return -1;
    for (int c = 0; c < 3; c++) colours[3 * palette->count + c] = code >> 8 * c & 255;
    palette->codes[place] = code;
    palette->numbers[place] = (uint8_t)palette->count;
    return palette->count++;
}

static int number_line(Palette *palette, const uint8_t *line, Py_ssize_t width, uint8_t *out, uint8_t *colours) {
    for (Py_ssize_t x = 0, end; x < width; x = end) {
        const uint8_t *pixel = line + 3 * x;
        int number = number_of(palette, pixel[0] | (uint32_t)pixel[1] << 8 | (uint32_t)pixel[2] << 16 | 1u << 24, colours);
        if (number < 0) return 0;
        end = end_of_colour(line, 3 * x + 3, 3 * width) / 3;
        if (end - x > 8 || width - x < 8) memset(out + x, number, (size_t)(end - x));
        else memset(out + x, number, 8); /* one store; those too many are overwritten */
    }
    return 1;
}

static void mark_line(const uint8_t *line, Py_ssize_t width, uint8_t *occurs) {
    Py_ssize_t x = 0;
    if (width) occurs[line[0]] = 1;
    for (; x + 9 <= width; x += 8)
        if (eight(line + x) != eight(line + x + 1)) /* else each equals the next, so all are equal */
            for (int k = 1; k <= 8; k++) occurs[line[x + k]] = 1;
    for (; x < width; x++) occurs[line[x]] = 1;
}

static PyObject *numbers(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *occurs_object, *result = NULL;
    Py_buffer pixels, occurs;
    if (!PyArg_ParseTuple(arguments, "OO", &pixels_object, &occurs_object)) return NULL;
    if (!get_array(pixels_object, &pixels, 2, 1, 0, "pixels")) return NULL;
    if (!get_array(occurs_object, &occurs, 1, 1, 1, "occurs")) goto release_pixels;
    if (occurs.shape[0] != 256) {
        PyErr_SetString(PyExc_ValueError, "occurs: expected 256 bytes");
        goto release_occurs;
    }
    if (!are_apart(&occurs, &pixels)) goto release_occurs;
    Py_BEGIN_ALLOW_THREADS
    memset(occurs.buf, 0, 256);
    for (Py_ssize_t y = 0; pixels.len && y < pixels.shape[0]; y++)
        mark_line((const uint8_t *)pixels.buf + y * pixels.strides[0], pixels.shape[1], occurs.buf);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_occurs:
    PyBuffer_Release(&occurs);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyObject *colours(PyObject *module, PyObject *arguments) {
    PyObject *pixels_object, *out_object, *colours_object, *result = NULL;
    Py_buffer pixels, out, colours;
    if (!PyArg_ParseTuple(arguments, "OOO", &pixels_object, &out_object, &colours_object)) return NULL;
    if (!get_array(pixels_object, &pixels, 2, 1, 0, "pixels")) return NULL;
    if (!get_array(out_object, &out, 2, 1, 1, "out")) goto release_pixels;
    if (!get_array(colours_object, &colours, 1, 1, 1, "colours")) goto release_out;
    if (out.shape[0] != pixels.shape[0] || pixels.shape[1] % 3 || out.shape[1] != pixels.shape[1] / 3 ||
        colours.shape[0] != 3 * MOST) {
        PyErr_SetString(PyExc_ValueError, "out: is not as large as the pixels, or no room for 256 colours");
        goto release_colours;
    }
    if (!are_apart(&out, &pixels) || !are_apart(&colours, &pixels) || !are_apart(&colours, &out)) goto release_colours;
    Palette *palette = calloc(1, sizeof *palette);
    if (!palette) {
        PyErr_NoMemory();
        goto release_colours;
    }
    int fits = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t y = 0; fits && out.len && y < out.shape[0]; y++)
        fits = number_line(palette, (const uint8_t *)pixels.buf + y * pixels.strides[0], out.shape[1],
                           (uint8_t *)out.buf + y * out.strides[0], colours.buf);
    Py_END_ALLOW_THREADS
    result = PyLong_FromLong(fits ? palette->count : -1);
    free(palette);
release_colours:
    PyBuffer_Release(&colours);
release_out:
    PyBuffer_Release(&out);
release_pixels:
    PyBuffer_Release(&pixels);
    return result;
}

static PyMethodDef functions[] = {
    {"numbers", numbers, METH_VARARGS, "numbers(pixels, occurs): set occurs[n] to 1 for each n in (H, W) bytes, else to 0."},
    {"colours", colours, METH_VARARGS,
     "colours(pixels, out, colours): number the colours of (H, 3 W) bytes. Write the numbers to (H, W) bytes, the colours to "
     "768 bytes. Return how many there are; -1 if more than 256."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(distinct_kernel, "Find the numbers or colours of a label.", functions)
