/* Threads that divide operations among them; each holds a lock for a part of it.

   locks KIND THREADS OPERATIONS HELD APART
   HELD and APART are steps of arithmetic, with the lock and without it.

   mutex     one lock, a variable of the program
   heap      one lock, in allocated memory, taken by a function of its own
   nested    the hot lock is taken while another one is held that nobody contends
   two       two locks: the hot one has HELD, the other a fiftieth of it
   write     a reader-writer lock, taken for writing
   condition a token that threads hand on, under a mutex with a condition */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cool = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *allocated;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t handed = PTHREAD_COND_INITIALIZER;
static int taken;
static const char *kind;
static long operations, held, apart;
static unsigned long result;

static __attribute__((noinline)) unsigned long work(unsigned long seed, long steps) {
    for (long step = 0; step < steps; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static __attribute__((noinline)) void take(pthread_mutex_t *lock) { pthread_mutex_lock(lock); }

static __attribute__((noinline)) void under_mutex(unsigned long *seed) {
    pthread_mutex_lock(&hot);
    result += *seed = work(*seed, held);
    pthread_mutex_unlock(&hot);
}

static __attribute__((noinline)) void under_heap(unsigned long *seed) {
    take(allocated);
    result += *seed = work(*seed, held);
    pthread_mutex_unlock(allocated);
}

static __attribute__((noinline)) void under_nested(unsigned long *seed, pthread_mutex_t *own) {
    pthread_mutex_lock(own);
    under_mutex(seed);
    pthread_mutex_unlock(own);
}

static __attribute__((noinline)) void under_two(unsigned long *seed) {
    under_mutex(seed);
    pthread_mutex_lock(&cool);
    *seed = work(*seed, held / 50);
    pthread_mutex_unlock(&cool);
}

static __attribute__((noinline)) void under_write(unsigned long *seed) {
    pthread_rwlock_wrlock(&table);
    result += *seed = work(*seed, held);
    pthread_rwlock_unlock(&table);
}

static __attribute__((noinline)) void under_condition(unsigned long *seed) {
    pthread_mutex_lock(&hot);
    while (taken)
        pthread_cond_wait(&handed, &hot);
    taken = 1;
    pthread_mutex_unlock(&hot);
    result += *seed = work(*seed, held);
    pthread_mutex_lock(&hot);
    taken = 0;
    pthread_cond_signal(&handed);
    pthread_mutex_unlock(&hot);
}

static void *worker(void *argument) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    unsigned long seed = 88172645463325252UL + (unsigned long)argument;
    for (long done = 0; done < operations; done++) {
        switch (kind[0]) {
        case 'm': under_mutex(&seed); break;
        case 'h': under_heap(&seed); break;
        case 'n': under_nested(&seed, &own); break;
        case 't': under_two(&seed); break;
        case 'w': under_write(&seed); break;
        default: under_condition(&seed);
        }
        seed = work(seed, apart);
    }
    return (void *)seed;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "locks KIND THREADS OPERATIONS HELD APART\n");
        return 2;
    }
    kind = arguments[1];
    int threads = atoi(arguments[2]);
    operations = atol(arguments[3]) / threads;
    held = atol(arguments[4]);
    apart = atol(arguments[5]);
    allocated = malloc(sizeof *allocated);
    pthread_mutex_init(allocated, NULL);
    pthread_t *started = calloc(threads, sizeof *started);
    for (long number = 0; number < threads; number++)
        pthread_create(&started[number], NULL, worker, (void *)number);
    for (int number = 0; number < threads; number++)
        pthread_join(started[number], NULL);
    printf("%lu\n", result);
    return 0;
}
