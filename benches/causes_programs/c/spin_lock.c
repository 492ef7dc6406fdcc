// A lock that only spins, held for 70 % of each operation: nobody sleeps, the CPU time grows.
#include "work.h"

static pthread_spinlock_t lock;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 4000 / it->threads; i++) {
        own = compute(10000 + own % 40000, own);
        pthread_spin_lock(&lock);
        shared = compute(40000 + shared % 60000, shared);
        pthread_spin_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
