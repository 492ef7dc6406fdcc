// A pool of threads that stays. Between its rounds the first thread does a quarter of the work, and
// the pool waits for it.
#include "work.h"

enum { ROUNDS = 40 };
static pthread_barrier_t begin, end;

static void *body(void *argument) {
    part *it = argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&begin);
        compute(7500000 / it->threads, it->index);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    pthread_barrier_init(&begin, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    pthread_t ids[threads];
    part parts[threads];
    for (int i = 0; i < threads; i++) {
        parts[i] = (part){i, threads};
        if (pthread_create(&ids[i], NULL, body, &parts[i]) != 0) return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        compute(2500000, round);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}
