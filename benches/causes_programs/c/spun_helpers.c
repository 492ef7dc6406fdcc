// A server of batches: the first thread divides what has come in among itself and helpers, and then
// answers all of it alone. The helpers never sleep: they look for the next batch until there is one, as
// the first thread looks for their end.
#include "work.h"
#include <stdatomic.h>

enum { BATCHES = 400, REQUESTS = 24, READ = 15000, ANSWER = 22500, HELPERS = 63 };

static struct {
    _Alignas(64) atomic_long left;
} pending[HELPERS + 1];
static atomic_int ended;

static void read_some(int helper, long requests) {
    if (compute(READ * requests, helper + 1) == 0) exit(1);
}

static void *help(void *argument) {
    int own = *(int *)argument;
    for (;;) {
        for (int turn = 0; turn < 1000000; turn++) {
            if (atomic_load(&pending[own].left) != 0) break;
        }
        if (atomic_load(&ended)) return NULL;
        long requests = atomic_load(&pending[own].left);
        if (requests == 0) continue;
        read_some(own, requests);
        atomic_store(&pending[own].left, 0);
    }
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1, numbers[HELPERS + 1];
    pthread_t ids[HELPERS + 1];
    for (int i = 1; i < threads; i++) {
        numbers[i] = i;
        if (pthread_create(&ids[i], NULL, help, &numbers[i]) != 0) return 1;
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 1; i < threads; i++) atomic_store(&pending[i].left, REQUESTS / threads);
        read_some(0, REQUESTS / threads);
        for (int i = 1; i < threads; i++) {
            while (atomic_load(&pending[i].left) != 0) {}
        }
        if (compute(ANSWER * REQUESTS, batch + 1) == 0) return 1;
    }
    atomic_store(&ended, 1);
    for (int i = 1; i < threads; i++) pthread_join(ids[i], NULL);
}
