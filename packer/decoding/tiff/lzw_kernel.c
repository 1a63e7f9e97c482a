/* Unpack LZW as TIFF has it.

A code has 9 to 12 bits: how many follows from the number of codes since the last CLEAR alone. A code below 256 is a byte,
256 is CLEAR and 257 is END. Each code but the first adds a word to the table: the word before it and one byte more. In the
output that byte follows the word, so the table is the position of each word in the output.

The stream is only read, and positions come from the codes that were taken, so another thread that changes it can change
what is unpacked and nothing else. */
#include "kernel.h"

enum { CLEAR = 256, END = 257, FIRST_FREE = 258, MOST_BITS = 12, MOST_CODES = 4096 + 1024 - FIRST_FREE };
enum { DAMAGED = -1 };

/* Copy a word that begins before `out`, and may reach into it: then its end is what was just written. */
static inline void copy_word(uint8_t *out, const uint8_t *word, Py_ssize_t length, Py_ssize_t room) {
    if (out - word >= 8 && length + 8 <= room)
        for (Py_ssize_t at = 0; at < length; at += 8) memcpy(out + at, word + at, 8); /* up to 7 too many are overwritten */
    else
        for (Py_ssize_t at = 0; at < length; at++) out[at] = word[at];
}

/* The bits that come next, the first at the top, and how many of them were read. */
typedef struct {
    const uint8_t *next, *end;
    uint64_t bits;
    int held;
} Bits;

/* Read at least 12 bits, or all that are left. */
static inline void refill(Bits *this) {
    if (this->held >= MOST_BITS) return;
    if (this->end - this->next >= 8) {
        uint64_t more = 0;
        for (int i = 0; i < 8; i++) more = more << 8 | this->next[i]; /* one load and one swap of bytes */
        this->bits |= more >> this->held;
        int bytes = (63 - this->held) / 8;
        this->next += bytes;
        this->held += 8 * bytes;
        return;
    }
    for (; this->held <= 56 && this->next < this->end; this->held += 8)
        this->bits |= (uint64_t)*this->next++ << (56 - this->held);
}

/* Return the bytes that were unpacked, at most `size`; DAMAGED if a code is not in the table yet. */
static Py_ssize_t unpack_all(const uint8_t *block, Py_ssize_t length, uint8_t *out, Py_ssize_t size) {
    Py_ssize_t starts[MOST_CODES + 1], done = 0;
    Bits in = {block, block + length, 0, 0};
    int count = 0, width = 9;
    while (done < size) {
        refill(&in);
        if (in.held < width || count == MOST_CODES) break;
        int code = (int)(in.bits >> (64 - width));
        in.bits <<= width;
        in.held -= width;
        if (code == END) break;
        if (code == CLEAR) {
            count = 0;
            width = 9;
            continue;
        }
        if (code >= FIRST_FREE + count) return DAMAGED;
        starts[count++] = done;
        if (width < MOST_BITS && FIRST_FREE + count == 1 << width) width++;
        if (code < CLEAR) {
            out[done++] = (uint8_t)code;
            continue;
        }
        Py_ssize_t begin = starts[code - FIRST_FREE], word = starts[code - FIRST_FREE + 1] - begin + 1;
        if (word > size - done) word = size - done;
        copy_word(out + done, out + begin, word, size - done);
        done += word;
    }
    return done;
}

static PyObject *unpack(PyObject *module, PyObject *arguments) {
    PyObject *block_object, *out_object, *result = NULL;
    Py_buffer block, out;
    Py_ssize_t done;
    if (!PyArg_ParseTuple(arguments, "OO", &block_object, &out_object)) return NULL;
    if (!get_array(block_object, &block, 1, 1, 0, "block")) return NULL;
    if (!get_array(out_object, &out, 1, 1, 1, "out")) goto release_block;
    if (!are_apart(&out, &block)) goto release_out;
    Py_BEGIN_ALLOW_THREADS
    done = unpack_all(block.buf, block.shape[0], out.buf, out.shape[0]);
    Py_END_ALLOW_THREADS
    result = PyLong_FromSsize_t(done);
release_out:
    PyBuffer_Release(&out);
release_block:
    PyBuffer_Release(&block);
    return result;
}

static PyMethodDef functions[] = {
    {"unpack", unpack, METH_VARARGS,
     "unpack(block, out): write what a block unpacks to, at most the bytes of `out`, and return their number; -1 if a code "
     "is not in the table yet."},
    {NULL, NULL, 0, NULL},
};

KERNEL_MODULE(lzw_kernel, "Unpack LZW of TIFF.", functions)
