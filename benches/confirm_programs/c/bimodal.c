/* One hold in ten is for nineteen times as long as the others. HELD: steps on the average; APART:
   steps. */
#include "plant.h"

static pthread_mutex_t store_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {}

static __attribute__((noinline)) void put(unsigned long *seed) {
    long steps = drawn(seed) % 10 ? held * 10 / 28 : held * 190 / 28;
    pthread_mutex_lock(&store_lock);
    result += *seed = work(*seed, steps);
    pthread_mutex_unlock(&store_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    put(seed);
    *seed = work(*seed, apart);
}
