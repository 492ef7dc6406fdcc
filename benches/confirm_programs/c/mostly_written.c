/* A reader-writer lock. KIND: of how many operations one reads, the others write. HELD, APART:
   steps. */
#include "plant.h"

static pthread_rwlock_t rows_lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long rows;

static void prepare(void) {}

static __attribute__((noinline)) void change(unsigned long *seed) {
    pthread_rwlock_wrlock(&rows_lock);
    rows += *seed = work(*seed, held);
    pthread_rwlock_unlock(&rows_lock);
}

static __attribute__((noinline)) void look(unsigned long *seed) {
    pthread_rwlock_rdlock(&rows_lock);
    *seed = work(*seed ^ (rows & 1), held) | 1;
    pthread_rwlock_unlock(&rows_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    if (drawn(seed) % (unsigned long)atol(kind))
        change(seed);
    else
        look(seed);
    *seed = work(*seed, apart);
}
