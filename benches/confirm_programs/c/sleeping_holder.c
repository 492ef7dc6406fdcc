/* Who has the lock sleeps, as one that waits for a device. HELD: microseconds asleep; APART:
   steps. */
#include "plant.h"
#include <time.h>

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {}

static __attribute__((noinline)) void use_device(void) {
    struct timespec time = {0, held * 1000};
    pthread_mutex_lock(&device_lock);
    nanosleep(&time, NULL);
    result++;
    pthread_mutex_unlock(&device_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    use_device();
    *seed = work(*seed, apart);
}
