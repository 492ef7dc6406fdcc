// A barrier that is made of a mutex and a condition: who comes last wakes the others. Each round is longer
// for another thread.
#include "plant.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_came = PTHREAD_COND_INITIALIZER;
static int threads;
static int came;
static uint64_t generation;

static void wait_for_all(int thread) {
    WAIT(thread, 1, pthread_mutex_lock(&mutex));  // wait_for_all
    uint64_t own = generation;
    if (++came == (contended ? threads : 1)) {
        came = 0;
        generation++;
        pthread_cond_broadcast(&all_came);
    }
    while (own == generation) WAIT(thread, 2, pthread_cond_wait(&all_came, &mutex));  // wait_for_all
    pthread_mutex_unlock(&mutex);
}

static void turn(int thread, uint64_t round) {
    static __thread uint64_t turns;
    compute(turns++ % 4 == (uint64_t)thread ? 300000 : 50000, round);
    wait_for_all(thread);
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 4;
    return plant(threads);
}
