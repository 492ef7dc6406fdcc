// The same barrier, of a mutex and a condition, with rounds that are even: hardly anyone waits.
#include "work.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_came = PTHREAD_COND_INITIALIZER;
static int came;
static int generation;
enum { ROUNDS = 100 };

static void wait_for_all(int threads) {
    pthread_mutex_lock(&mutex);
    int own = generation;
    if (++came == threads) {
        came = 0;
        generation++;
        pthread_cond_broadcast(&all_came);
    }
    while (own == generation) pthread_cond_wait(&all_came, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void *body(void *argument) {
    part *it = argument;
    for (int round = 0; round < ROUNDS; round++) {
        compute(4000000 / it->threads, it->index);
        wait_for_all(it->threads);
    }
    return NULL;
}

int main(int argc, char **argv) { in_threads(argc > 1 ? number(argv[1]) : 1, body); }
