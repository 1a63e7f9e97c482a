/* Paint polygons by the plain rule: a pixel is inside if an odd number of edges lies to the left of its centre.

Each edge flips, in every row whose middle it crosses, the first pixel to its right. Then each pixel is flipped as often as
those before it in its row. even_odd.py has the same computation in NumPy. Every number is a double that is computed in the same
order, and no product is followed by a sum, so both find the same pixels. */
#include "kernel.h"

#include <math.h>

typedef struct {
    uint8_t *pixels;
    Py_ssize_t lines, columns, stride;
    double top, left;
} Window;

typedef struct {
    double x1, y1, x2, y2; /* from above to below */
    Py_ssize_t first, end; /* lines of the window */
} Edge;

/* Return the first line whose middle is not above y. */
static Py_ssize_t line_at(double y, const Window *window) {
    double line = ceil(y - .5) - window->top;
    if (!(line > 0)) return 0;
    return line < (double)window->lines ? (Py_ssize_t)line : window->lines;
}

static Edge edge_at(const Py_buffer *edges, Py_ssize_t number, const Window *window) {
    double ends[4];
    memcpy(ends, (const char *)edges->buf + number * edges->strides[0], sizeof ends);
    int is_downward = ends[1] < ends[3];
    const double *from = is_downward ? ends : ends + 2, *to = is_downward ? ends + 2 : ends;
    Edge edge = {from[0], from[1], to[0], to[1], line_at(from[1], window), line_at(to[1], window)};
    return edge;
}

static void flip(const Edge *edge, const Window *window) {
    for (Py_ssize_t line = edge->first; line < edge->end; line++) {
        double row = window->top + (double)line;
        double column = floor((row + .5 - edge->y1) * (edge->x2 - edge->x1) / (edge->y2 - edge->y1) + edge->x1 + .5) - window->left;
        if (!(column > 0)) column = 0;
        if (column < (double)window->columns) window->pixels[line * window->stride + (Py_ssize_t)column] ^= 1;
    }
}

static void fill_line(uint8_t *pixels, Py_ssize_t columns) {
    Py_ssize_t x = 0;
    uint8_t before = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (uint64_t word; x + 8 <= columns; x += 8) {
        memcpy(&word, pixels + x, 8);
        word ^= word << 8;
        word ^= word << 16;
        word ^= word << 32;
        word ^= before * 0x0101010101010101u;
        before = (uint8_t)(word >> 56);
        memcpy(pixels + x, &word, 8);
    }
#endif
    for (; x < columns; x++) before = pixels[x] ^= before;
}

/* Return how often the edges cross lines of the window, and flip its pixels if `paints`. */
static int64_t follow(const Py_buffer *edges, const Window *window, int paints) {
    int64_t crossings = 0;
    for (Py_ssize_t number = 0; number < edges->shape[0]; number++) {
        Edge edge = edge_at(edges, number, window);
        if (edge.end > edge.first) crossings += edge.end - edge.first;
        if (paints) flip(&edge, window);
    }
    return crossings;
}

static PyObject *paint(PyObject *module, PyObject *arguments) {
    PyObject *objects[2], *result = NULL;
    Py_buffer edges, out;
    long long top, left, most;
    if (!PyArg_ParseTuple(arguments, "OOLLL", objects, objects + 1, &top, &left, &most)) return NULL;
    if (!get_array(objects[0], &edges, 2, 8, 0, "edges")) return NULL;
    if (!get_array(objects[1], &out, 2, 1, 1, "out")) {
        PyBuffer_Release(&edges);
        return NULL;
    }
    Window window = {out.buf, out.shape[0], out.shape[1], out.strides[0], (double)top, (double)left};
    if (edges.shape[1] != 4 || top < 0 || left < 0 || top > INT32_MAX || left > INT32_MAX || out.shape[0] > INT32_MAX ||
        out.shape[1] > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "edges, top, left: not edges and a window of a picture");
    } else if (are_apart(&out, &edges)) {
        int64_t crossings;
        Py_BEGIN_ALLOW_THREADS
        crossings = follow(&edges, &window, 0);
        if (crossings <= most) {
            follow(&edges, &window, 1);
            for (Py_ssize_t line = 0; line < window.lines && out.len; line++)
                fill_line(window.pixels + line * window.stride, window.columns);
        }
        Py_END_ALLOW_THREADS
        result = PyLong_FromLongLong(crossings);
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&edges);
    return result;
}

static PyMethodDef functions[] = {
    {"paint", paint, METH_VARARGS,
     "paint(edges, out, top, left, most): flip the pixels of `out`, a window of zeros at (top, left) of a picture, that lie between "
     "(n, 4) edges x, y, x, y. These are doubles, given as the integers of their bits. Return how often they cross rows; nothing is "
     "painted if that is more than `most`."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(even_odd_kernel, "Paint polygons by their even and odd crossings.", functions)
