/* A lock that hardly anybody waits for. HELD, APART: steps.

   reads      a reader-writer lock, for reading alone
   seldom     a mutex at one operation in a thousand
   own        each thread has a mutex of its own
   once       a mutex at the first operation of a thread only */
#include "plant.h"

static pthread_rwlock_t rows = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local long done;

static void prepare(void) {}

static __attribute__((noinline)) void under_mutex(pthread_mutex_t *lock, unsigned long *seed) {
    pthread_mutex_lock(lock);
    *seed = work(*seed, held);
    pthread_mutex_unlock(lock);
}

static __attribute__((noinline)) void under_reads(unsigned long *seed) {
    pthread_rwlock_rdlock(&rows);
    *seed = work(*seed, held);
    pthread_rwlock_unlock(&rows);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    done++;
    if (kind[0] == 'r')
        under_reads(seed);
    else if (kind[1] == 'w')
        under_mutex(&own, seed);
    else if (kind[0] == 's' ? done % 1000 == 0 : done == 1)
        under_mutex(&common, seed);
    *seed = work(*seed, apart);
}
