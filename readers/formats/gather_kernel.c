/* Copy rows of a mapped file into a batch.

A batch is larger than the caches, and its rows are read once. A plain copy reads each line of the target from memory
before it overwrites the line, and throws other data out of the caches. Stores past the caches spare both, but a single
stream of them leaves the memory waiting for the next page of the source: the CPU prefetches within a page only. So four
pages are copied side by side, line by line. Measured with rows of 768 KiB: 1.5 times the rate of memcpy, where one stream
makes 1.1 times.

Small batches are copied by memcpy: their reader finds them in the caches. */
#include "kernel.h"

#define PAGE 4096
#define SIDE_BY_SIDE 4
#define LARGE (1 << 20) /* bytes of a batch from which on it is stored past the caches */

#ifdef X86
#define LINE 64

AVX2 static inline void store_line(uint8_t *to, const uint8_t *from) {
    __m256i low = _mm256_loadu_si256((const __m256i *)from), high = _mm256_loadu_si256((const __m256i *)(from + 32));
    _mm256_stream_si256((__m256i *)to, low);
    _mm256_stream_si256((__m256i *)(to + 32), high);
}

AVX2 static void copy_past_caches(uint8_t *to, const uint8_t *from, size_t size) {
    const size_t head = -(uintptr_t)to & (LINE - 1);
    if (size < head + LINE) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, from, head);
    to += head, from += head, size -= head;
    for (; size >= SIDE_BY_SIDE * PAGE; size -= SIDE_BY_SIDE * PAGE) {
        for (int offset = 0; offset < PAGE; offset += LINE)
            for (int page = 0; page < SIDE_BY_SIDE; page++) {
                _mm_prefetch((const char *)from + page * PAGE + offset + 8 * LINE, _MM_HINT_T0);
                store_line(to + page * PAGE + offset, from + page * PAGE + offset);
            }
        to += SIDE_BY_SIDE * PAGE, from += SIDE_BY_SIDE * PAGE;
    }
    for (; size >= LINE; to += LINE, from += LINE, size -= LINE) store_line(to, from);
    memcpy(to, from, size);
}
#endif

/* Copy row n of `size` bytes from data + starts[n] to out + targets[n] * gap. */
static void copy_rows(uint8_t *out, Py_ssize_t gap, const uint8_t *data, const int64_t *starts, const int64_t *targets,
                      Py_ssize_t count, size_t size, int past_caches) {
    for (Py_ssize_t row = 0; row < count; row++) {
        uint8_t *to = out + targets[row] * gap;
        const uint8_t *from = data + starts[row];
#ifdef X86
        if (past_caches) {
            copy_past_caches(to, from, size);
            continue;
        }
#endif
        memcpy(to, from, size);
    }
#ifdef X86
    if (past_caches) _mm_sfence();
#endif
}

static int check_rows(const Py_buffer *data, const Py_buffer *starts, const Py_buffer *out, const Py_buffer *targets) {
    const Py_ssize_t size = out->shape[1], count = starts->shape[0];
    const int64_t *start = starts->buf, *target = targets->buf;
    int fits = targets->shape[0] == count && size <= data->shape[0];
    for (Py_ssize_t row = 0; fits && row < count; row++)
        fits = start[row] >= 0 && start[row] <= data->shape[0] - size && target[row] >= 0 && target[row] < out->shape[0];
    if (!fits) PyErr_SetString(PyExc_ValueError, "gather: a row lies outside of the file or of the batch");
    return fits;
}

static PyObject *gather(PyObject *module, PyObject *arguments) {
    static const struct { const char *name; int ndim, itemsize, writable; } wanted[] = {
        {"data", 1, 1, 0}, {"starts", 1, 8, 0}, {"out", 2, 1, 1}, {"targets", 1, 8, 0}};
    PyObject *objects[4], *result = NULL;
    Py_buffer views[4], *data = &views[0], *starts = &views[1], *out = &views[2], *targets = &views[3];
    int held = 0;
    if (!PyArg_ParseTuple(arguments, "OOOO", &objects[0], &objects[1], &objects[2], &objects[3])) return NULL;
    for (; held < 4; held++)
        if (!get_array(objects[held], &views[held], wanted[held].ndim, wanted[held].itemsize, wanted[held].writable, wanted[held].name))
            goto release;
    if (!check_rows(data, starts, out, targets)) goto release;
    const Py_ssize_t count = starts->shape[0], size = out->shape[1];
    const int past_caches = has_avx2() && size >= LARGE / (count ? count : 1);
    Py_BEGIN_ALLOW_THREADS
    copy_rows(out->buf, out->strides[0], data->buf, starts->buf, targets->buf, count, (size_t)size, past_caches);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release:
    while (held > 0) PyBuffer_Release(&views[--held]);
    return result;
}

static PyMethodDef functions[] = {
    {"gather", gather, METH_VARARGS,
     "gather(data, starts, out, targets): copy bytes of `data` from each of the starts into the rows `targets` of `out`."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(gather_kernel, "Rows of a mapped file into a batch.", functions)
