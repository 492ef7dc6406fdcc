/* Records that are formatted into one buffer under its lock. HELD: records of an operation; APART:
   steps. */
#include "plant.h"

enum { BYTES = 1 << 16 };
static char buffer[BYTES];
static size_t used;
static pthread_mutex_t *log_lock;

static void prepare(void) {
    log_lock = malloc(sizeof *log_lock);
    pthread_mutex_init(log_lock, NULL);
}

static __attribute__((noinline)) void append(long number, unsigned long seed) {
    pthread_mutex_lock(log_lock);
    for (long record = 0; record < held; record++) {
        if (used > BYTES - 128)
            used = 0;
        used += (size_t)snprintf(buffer + used, 128, "thread %ld record %ld: %lx %f\n", number,
                                 record, seed, (double)record / 3);
    }
    pthread_mutex_unlock(log_lock);
}

static void operation(long number, unsigned long *seed) {
    append(number, *seed);
    *seed = work(*seed, apart);
}
