// Rounds with a barrier: one thread, another in each round, has three times the work of the others.
#include "work.h"

static pthread_barrier_t barrier;
enum { ROUNDS = 100 };

static void *body(void *argument) {
    part *it = argument;
    uint64_t share = 4000000 / (it->threads + 2);
    for (int round = 0; round < ROUNDS; round++) {
        int slow = it->threads == 1 || round % it->threads == it->index;
        compute(slow ? 3 * share : share, it->index);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    pthread_barrier_init(&barrier, NULL, threads);
    in_threads(threads, body);
}
