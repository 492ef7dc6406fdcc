/* A pool takes its tasks from a queue under a mutex with a condition; whoever takes one looks for the
   best first. HELD: steps of that; APART: steps of a task. */
#include "plant.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_filled = PTHREAD_COND_INITIALIZER;
static long tasks;

static void prepare(void) { tasks = operations; }

static __attribute__((noinline)) void next_task(unsigned long *seed) {
    pthread_mutex_lock(&queue_lock);
    while (tasks == 0)
        pthread_cond_wait(&is_filled, &queue_lock);
    tasks--;
    *seed = work(*seed, held);
    pthread_mutex_unlock(&queue_lock);
}

static __attribute__((noinline)) void done(unsigned long seed) {
    pthread_mutex_lock(&queue_lock);
    result += seed;
    pthread_cond_signal(&is_filled);
    pthread_mutex_unlock(&queue_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    next_task(seed);
    *seed = work(*seed, apart);
    done(*seed);
}
