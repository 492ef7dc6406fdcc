/* Rounds of a hundred operations with one lock, and a barrier behind each. HELD, APART: steps. */
#include "plant.h"

static pthread_barrier_t round_end;
static pthread_mutex_t sum_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) { pthread_barrier_init(&round_end, NULL, (unsigned)threads); }

static __attribute__((noinline)) void add(unsigned long *seed) {
    pthread_mutex_lock(&sum_lock);
    result += *seed = work(*seed, held);
    pthread_mutex_unlock(&sum_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    for (long part = 0; part < 100; part++) {
        add(seed);
        *seed = work(*seed, apart);
    }
    pthread_barrier_wait(&round_end);
}
