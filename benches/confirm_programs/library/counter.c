/* A library with a lock of its own. */
#include <pthread.h>

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counter;

__attribute__((noinline)) unsigned long counter_add(unsigned long seed, long steps) {
    pthread_mutex_lock(&counter_lock);
    for (long step = 0; step < steps; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    counter += seed;
    pthread_mutex_unlock(&counter_lock);
    return seed;
}
