/* Expand class numbers to planes of 0 and 1.

plane[c][y][x] = (index[y][x] == c). A number beyond the classes, such as that of ignored pixels, is 0 in every plane.

The planes are many times as large as the numbers, and this core does not read them soon. So 32 bytes at a time are stored
past the caches: the CPU does not read memory that is overwritten whole. Planes are written one after the other, because
stores past the caches to many places at a time are slower than stores through them. */
#include "kernel.h"

static void line_plain(uint8_t *out, const uint8_t *index, Py_ssize_t width, Py_ssize_t item, unsigned number) {
    if (item == 1) {
        for (Py_ssize_t x = 0; x < width; x++) out[x] = index[x] == number;
        return;
    }
    for (Py_ssize_t x = 0; x < width; x++) {
        uint16_t value;
        memcpy(&value, index + 2 * x, 2);
        out[x] = value == number;
    }
}

#ifdef X86
AVX2 static void line_avx2(uint8_t *out, const uint8_t *index, Py_ssize_t width, unsigned number) {
    const __m256i wanted = _mm256_set1_epi8((char)number), ones = _mm256_set1_epi8(1);
    Py_ssize_t x = 0, head = -(uintptr_t)out & 31;
    for (; x < head && x < width; x++) out[x] = index[x] == number;
    for (; x + 32 <= width; x += 32) {
        __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(index + x)), wanted);
        _mm256_stream_si256((__m256i *)(out + x), _mm256_and_si256(equal, ones));
    }
    for (; x < width; x++) out[x] = index[x] == number;
}
#endif

static void expand_all(const Py_buffer *out, const Py_buffer *index, int avx2) {
    Py_ssize_t height = out->shape[1], width = out->shape[2];
    if (out->strides[1] == width && index->strides[0] == width * index->itemsize) { /* without gaps: one long line */
        width *= height;
        height = 1;
    }
    for (Py_ssize_t number = 0; number < out->shape[0]; number++)
        for (Py_ssize_t y = 0; y < height; y++) {
            uint8_t *line = (uint8_t *)out->buf + number * out->strides[0] + y * out->strides[1];
            const uint8_t *numbers = (const uint8_t *)index->buf + y * index->strides[0];
#ifdef X86
            if (avx2 && index->itemsize == 1) {
                if (number < 256) line_avx2(line, numbers, width, (unsigned)number);
                else memset(line, 0, (size_t)width);
                continue;
            }
#endif
            line_plain(line, numbers, width, index->itemsize, (unsigned)number);
        }
#ifdef X86
    if (avx2) _mm_sfence();
#endif
}

static PyObject *expand(PyObject *module, PyObject *arguments) {
    PyObject *index_object, *out_object, *result = NULL;
    Py_buffer index, out;
    if (!PyArg_ParseTuple(arguments, "OO", &index_object, &out_object)) return NULL;
    if (!get_array(index_object, &index, 2, 0, 0, "index")) return NULL;
    if (!get_array(out_object, &out, 3, 1, 1, "out")) goto release_index;
    if (out.shape[1] != index.shape[0] || out.shape[2] != index.shape[1]) {
        PyErr_SetString(PyExc_ValueError, "out: the planes are not as large as the index");
        goto release_out;
    }
    if (!are_apart(&out, &index)) goto release_out;
    int avx2 = has_avx2();
    Py_BEGIN_ALLOW_THREADS
    if (out.len) expand_all(&out, &index, avx2);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_index:
    PyBuffer_Release(&index);
    return result;
}

static PyMethodDef functions[] = {
    {"expand", expand, METH_VARARGS, "expand(index, out): write the planes of a (H, W) index of 1 or 2 bytes into (C, H, W) bytes."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(onehot_kernel, "Class numbers to planes of 0 and 1.", functions)
