/* Counts of a thread's own, added to those of all under one lock. HELD: bins that are added (up to
   65536); APART: values that are counted. */
#include "plant.h"

enum { BINS = 65536 };
static unsigned long all[BINS];
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned long own[BINS];

static void prepare(void) {}

static __attribute__((noinline)) void add(unsigned long *seed) {
    pthread_mutex_lock(&all_lock);
    for (long bin = 0; bin < held; bin++) {
        all[bin] += own[bin] ^ (*seed >> 60);
        __asm__ volatile("" ::: "memory");
    }
    pthread_mutex_unlock(&all_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    for (long value = 0; value < apart; value++)
        own[drawn(seed) % BINS]++;
    add(seed);
}
