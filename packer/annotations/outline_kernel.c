/* Paint an outline as pycocotools does.

The outline runs on a grid of five steps a pixel. Where it goes from step 5 * column + 2 to the next one, it crosses the middle
of a column, in both directions. The pixels of that column change from there down: inside becomes outside, and the other way.
So each crossing flips one pixel of the window, and then each line is the one above with its own flips.

coco_polygon.py has the same computation in NumPy, and says why only the crossings matter. Every number is a double that is
computed in the same order, and no product is fused with a sum, so both find the same pixels. */
#include "kernel.h"

#include <math.h>

enum { SCALE = 5 };

typedef struct {
    uint8_t *pixels;
    Py_ssize_t lines, columns, stride;
    int64_t top, left;
    double height;
} Window;

typedef struct {
    double x, y, slope;
    int is_flat;
    int64_t first, last; /* columns */
} Edge;

static inline double product(double a, double b) {
    volatile double rounded = a * b; /* not fused with the sum that follows */
    return rounded;
}

static inline int64_t floor_fifth(int64_t steps) { return steps >= 0 ? steps / SCALE : -((-steps + SCALE - 1) / SCALE); }

/* Describe an edge from the end at which the axis that it follows is smaller. */
static Edge edge_between(const int64_t *from, const int64_t *to, const Window *window) {
    int64_t dx = llabs(to[0] - from[0]), dy = llabs(to[1] - from[1]);
    int is_flat = dx >= dy;
    const int64_t *start = (is_flat ? from[0] > to[0] : from[1] > to[1]) ? to : from, *end = start == from ? to : from;
    int64_t low = from[0] < to[0] ? from[0] : to[0], high = from[0] < to[0] ? to[0] : from[0];
    int64_t first = floor_fifth(low + 2), last = floor_fifth(high - 3), most = window->left + window->columns - 1;
    double along = (double)(is_flat ? dx : dy), across = (double)(is_flat ? end[1] - start[1] : end[0] - start[0]);
    Edge edge = {(double)start[0], (double)start[1], along > 0 ? across / along : 0, is_flat, 0, 0};
    edge.first = first > window->left ? first : window->left;
    edge.last = last < most ? last : most;
    return edge;
}

/* Return the step of the grid, counted downwards, at which an edge crosses the middle of a column. */
static double crossing(const Edge *edge, int64_t column) {
    double step = (double)(SCALE * column + 2);
    if (edge->is_flat) {
        double done = step - edge->x;
        double here = trunc(edge->y + product(edge->slope, done) + .5);
        double next = trunc(edge->y + product(edge->slope, done + 1) + .5);
        return here < next ? here : next;
    }
    double done = floor((step + .5 - edge->x) / edge->slope) - 1;
    for (int i = 0; i < 3; i++)
        if ((edge->x + product(edge->slope, done) + .5 < step + 1) == (edge->slope > 0)) done += 1;
    return edge->y + done - 1;
}

static void flip(const Edge *edge, const Window *window) {
    for (int64_t column = edge->first; column <= edge->last; column++) {
        double y = (crossing(edge, column) + .5) / SCALE - .5;
        y = y > 0 ? y : 0;
        int64_t line = (int64_t)ceil(y < window->height ? y : window->height) - window->top;
        if (line < 0) line = 0;
        if (line < window->lines) window->pixels[line * window->stride + (column - window->left)] ^= 1;
    }
}

/* Return the point with this number, or 0 if it lies where no product of coordinates could be computed. */
static int point_at(const Py_buffer *points, Py_ssize_t number, int64_t *point) {
    memcpy(point, (const char *)points->buf + number * points->strides[0], 2 * sizeof(int64_t));
    for (int axis = 0; axis < 2; axis++)
        if (point[axis] < -INT32_MAX || point[axis] > INT32_MAX) return 0;
    return 1;
}

/* Return how often the outline crosses columns of the window, and flip its pixels if `paints`; -1 if a point lies too far. */
static int64_t follow(const Py_buffer *points, const Window *window, int paints) {
    int64_t crossings = 0, before[2], point[2];
    Py_ssize_t count = points->shape[0];
    if (!count) return 0;
    if (!point_at(points, count - 1, before)) return -1;
    for (Py_ssize_t number = 0; number < count; number++) {
        if (!point_at(points, number, point)) return -1;
        Edge edge = edge_between(before, point, window);
        if (edge.last >= edge.first) crossings += edge.last - edge.first + 1;
        if (paints) flip(&edge, window);
        memcpy(before, point, sizeof before);
    }
    return crossings;
}

static void fill(const Window *window) {
    for (Py_ssize_t line = 1; line < window->lines; line++) {
        uint8_t *pixels = window->pixels + line * window->stride;
        for (Py_ssize_t x = 0; x < window->columns; x++) pixels[x] ^= pixels[x - window->stride];
    }
}

static PyObject *paint(PyObject *module, PyObject *arguments) {
    PyObject *objects[2], *result = NULL;
    Py_buffer points, out;
    long long top, left, height, most;
    if (!PyArg_ParseTuple(arguments, "OOLLLL", objects, objects + 1, &top, &left, &height, &most)) return NULL;
    if (!get_array(objects[0], &points, 2, 8, 0, "points")) return NULL;
    if (!get_array(objects[1], &out, 2, 1, 1, "out")) {
        PyBuffer_Release(&points);
        return NULL;
    }
    Window window = {out.buf, out.shape[0], out.shape[1], out.strides[0], top, left, (double)height};
    int64_t crossings = -1;
    if (points.shape[1] != 2 || top < 0 || left < 0 || height < 0 || top > INT32_MAX || left > INT32_MAX || height > INT32_MAX ||
        out.shape[1] > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "points, top, left, height: not an outline and a window of a picture");
    } else if (are_apart(&out, &points)) {
        Py_BEGIN_ALLOW_THREADS
        crossings = follow(&points, &window, 0);
        if (crossings >= 0 && crossings <= most) {
            crossings = follow(&points, &window, 1);
            fill(&window);
        }
        Py_END_ALLOW_THREADS
        if (crossings < 0) PyErr_SetString(PyExc_ValueError, "points: beyond 31 bits");
        else result = PyLong_FromLongLong(crossings);
    }
    PyBuffer_Release(&out);
    PyBuffer_Release(&points);
    return result;
}

static PyMethodDef functions[] = {
    {"paint", paint, METH_VARARGS,
     "paint(points, out, top, left, height, most): flip the pixels of `out`, a window of zeros at (top, left) of a picture, that "
     "lie in the outline of (n, 2) points in fifths of a pixel. Return its crossings; nothing is painted if there are more than `most`."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(outline_kernel, "Paint outlines as pycocotools does.", functions)
