// A sum that all threads add to by compare-and-swap; who fails pauses for a moment. There is no lock:
// nobody waits for a thread that has something, the line of the sum goes to and fro.
#include "work.h"
#include <stdatomic.h>

static _Alignas(64) _Atomic uint64_t sum;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 60000000 / it->threads; i++) {
        own = own * 6364136223846793005u + 1442695040888963407u;
        uint64_t seen = atomic_load_explicit(&sum, memory_order_relaxed);
        while (!atomic_compare_exchange_weak(&sum, &seen, seen * 3 + (own >> 60))) {
            __builtin_ia32_pause();
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
