/* What no thread has as a mutex is had. HELD, APART: steps.

   spin         a spin lock of the C library
   permit       a semaphore of one permit */
#include "plant.h"
#include <semaphore.h>

static pthread_spinlock_t spin;
static sem_t permit;

static void prepare(void) {
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&permit, 0, 1);
}

static __attribute__((noinline)) void under_spin(unsigned long *seed) {
    pthread_spin_lock(&spin);
    result += *seed = work(*seed, held);
    pthread_spin_unlock(&spin);
}

static __attribute__((noinline)) void under_permit(unsigned long *seed) {
    sem_wait(&permit);
    result += *seed = work(*seed, held);
    sem_post(&permit);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    if (kind[0] == 's')
        under_spin(seed);
    else
        under_permit(seed);
    *seed = work(*seed, apart);
}
