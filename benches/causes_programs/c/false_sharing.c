// Each thread counts in a word of its own; the words stand in one cache line.
#include "work.h"
#include <stdatomic.h>

static _Alignas(64) atomic_ulong counters[8];

static void *body(void *argument) {
    part *it = argument;
    for (long i = 0; i < 60000000 / it->threads; i++) {
        atomic_fetch_add_explicit(&counters[it->index % 8], 1, memory_order_relaxed);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
