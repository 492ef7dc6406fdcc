// Rounds: all threads are woken at the start of each, and each has its part of it.
#include "work.h"

enum { ROUNDS = 40 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int arrived, ended;

static void *body(void *argument) {
    part *it = argument;
    for (int round = 0; round < ROUNDS; round++) {
        compute(10000000 / it->threads, it->index + 1);
        pthread_mutex_lock(&lock);
        if (++arrived == it->threads) {
            arrived = 0;
            ended = round + 1;
            pthread_cond_broadcast(&changed);
        }
        while (ended <= round) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
