/* One mutex, taken in different ways. HELD, APART: steps.

   tried    tried first, and waited for if somebody has it
   timed    with a time limit
   sites    in two functions, which hold it for different work */
#include "plant.h"
#include <time.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {}

static __attribute__((noinline)) void tried(unsigned long *seed) {
    if (pthread_mutex_trylock(&gate) != 0)
        pthread_mutex_lock(&gate);
    result += *seed = work(*seed, held);
    pthread_mutex_unlock(&gate);
}

static __attribute__((noinline)) void timed(unsigned long *seed) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (pthread_mutex_timedlock(&gate, &until) != 0)
        abort();
    result += *seed = work(*seed, held);
    pthread_mutex_unlock(&gate);
}

static __attribute__((noinline)) void insert(unsigned long *seed) {
    pthread_mutex_lock(&gate);
    result += *seed = work(*seed, held + held / 2);
    pthread_mutex_unlock(&gate);
}

static __attribute__((noinline)) void erase(unsigned long *seed) {
    pthread_mutex_lock(&gate);
    result -= *seed = work(*seed, held / 2);
    pthread_mutex_unlock(&gate);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    if (kind[0] == 's')
        drawn(seed) & 64 ? insert(seed) : erase(seed);
    else if (kind[1] == 'r')
        tried(seed);
    else
        timed(seed);
    *seed = work(*seed, apart);
}
