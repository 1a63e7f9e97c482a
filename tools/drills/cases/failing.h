/* Included before each kernel: one allocation of 997 fails if the variable DRILL_FAILS is set. */
#include <stdlib.h>

static inline int fails_now(void) {
    static unsigned calls;
    return ++calls % 997 == 0 && getenv("DRILL_FAILS");
}

#define malloc(size) (fails_now() ? NULL : malloc(size))
#define calloc(count, size) (fails_now() ? NULL : calloc(count, size))
