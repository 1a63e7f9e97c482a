/* Copy bytes past the caches.

A batch is larger than the caches, and its rows are read once. A plain copy reads each line of the target from memory
before it overwrites the line, and throws other data out of the caches. Stores past the caches spare both.

Three rules make such a copy fast at every pair of addresses; bench.kernel_offsets measures all of them:
- The CPU foresees what is read only up to the end of a page. So the copy requests the line that it reads a page later.
- A load waits for an earlier store whose address has the same low 12 bits, though it is another address. So four lines
  are loaded before the first of them is stored.
- The next loads must not meet those stores either. So a copy runs backwards if the source begins a little before the
  target, seen by these 12 bits, and forwards otherwise. */
#ifndef SEGPACK_PAST_CACHES_H
#define SEGPACK_PAST_CACHES_H

#include "kernel.h"

#ifdef X86
#define PAGE 4096
#define LINE 64
#define STEP (4 * LINE) /* bytes that are loaded before they are stored: 8 of the 16 registers */
#define LOADED_BEFORE_STORED __asm__ volatile("" ::: "memory") /* the compiler does not mix them */

static inline int runs_backwards(const uint8_t *to, const uint8_t *from) {
    return (((uintptr_t)from - (uintptr_t)to) & (PAGE - 1)) >= PAGE / 2;
}

AVX2 static inline void store_line(uint8_t *to, const uint8_t *from) {
    __m256i low = _mm256_loadu_si256((const __m256i *)from), high = _mm256_loadu_si256((const __m256i *)(from + 32));
    _mm256_stream_si256((__m256i *)to, low);
    _mm256_stream_si256((__m256i *)(to + 32), high);
}

/* Copy STEP bytes to an aligned target, and request as many at a distance of `ahead`. */
AVX2 static inline void store_step(uint8_t *to, const uint8_t *from, Py_ssize_t ahead) {
    __m256i bytes[STEP / 32];
    for (int i = 0; i < STEP / 32; i++) {
        if (i % 2 == 0) _mm_prefetch((const char *)from + ahead + 32 * i, _MM_HINT_T0);
        bytes[i] = _mm256_loadu_si256((const __m256i *)(from + 32 * i));
    }
    LOADED_BEFORE_STORED;
    for (int i = 0; i < STEP / 32; i++) _mm256_stream_si256((__m256i *)(to + 32 * i), bytes[i]);
}

/* Copy `size` bytes, and request those at a distance of `ahead`, or a page on if that is 0. After its last copy the caller
   says _mm_sfence(). */
AVX2 static void copy_past_caches(uint8_t *to, const uint8_t *from, size_t size, Py_ssize_t ahead) {
    const size_t head = -(uintptr_t)to & (LINE - 1);
    if (size < head + LINE) {
        memcpy(to, from, size);
        return;
    }
    memcpy(to, from, head);
    to += head, from += head, size -= head;
    const size_t body = size / STEP * STEP;
    if (runs_backwards(to, from))
        for (size_t left = body; left; left -= STEP) store_step(to + left - STEP, from + left - STEP, ahead ? ahead : -PAGE);
    else
        for (size_t done = 0; done < body; done += STEP) store_step(to + done, from + done, ahead ? ahead : PAGE);
    to += body, from += body, size -= body;
    for (; size >= LINE; to += LINE, from += LINE, size -= LINE) store_line(to, from);
    memcpy(to, from, size);
}
#endif

#endif
