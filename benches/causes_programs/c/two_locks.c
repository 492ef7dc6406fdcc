// Two locks, each taken by every operation one after the other, each held for 45 % of its time.
#include "work.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared[2] = {1, 1};

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 3000 / it->threads; i++) {
        own = compute(5000 + own % 10000, own);
        pthread_mutex_lock(&first);
        shared[0] = compute(20000 + shared[0] % 50000, shared[0]);
        pthread_mutex_unlock(&first);
        pthread_mutex_lock(&second);
        shared[1] = compute(20000 + shared[1] % 50000, shared[1]);
        pthread_mutex_unlock(&second);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
