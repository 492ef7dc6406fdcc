// Threads that look for a task every 200 µs: the first thread makes one, which takes it three times
// as long as they need for it. So it is the limit, however many they are.
#include "work.h"
#include <stdatomic.h>
#include <time.h>

enum { TASKS = 600 };
static atomic_int made, taken;

static void *worker(void *given) {
    (void)given;
    uint64_t seed = 1;
    for (;;) {
        int next = atomic_load(&taken);
        if (next == TASKS) return (void *)(seed | 1);
        if (next == atomic_load(&made)) {
            nanosleep(&(struct timespec){0, 200000}, NULL);
        } else if (atomic_compare_exchange_strong(&taken, &next, next + 1)) {
            seed = compute(200000, seed);
        }
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    pthread_t ids[threads];
    uint64_t seed = 1;
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, worker, NULL) != 0) return 1;
    }
    for (int i = 0; i < TASKS; i++) {
        seed = compute(600000, seed);
        atomic_store(&made, i + 1);
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return seed == 0;
}
