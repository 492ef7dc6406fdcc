// Thousands of short rounds with a barrier in which all threads have the same work: with more threads than
// CPUs each of them sleeps and is woken in each round, which is all that it costs.
#include "work.h"

static pthread_barrier_t barrier;
enum { ROUNDS = 5000 };

static void *body(void *argument) {
    part *it = argument;
    for (int round = 0; round < ROUNDS; round++) {
        compute(60000 / it->threads, it->index);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    pthread_barrier_init(&barrier, NULL, threads);
    in_threads(threads, body);
}
