// The first thread prepares what all need, for a third of the work; the others spin on an atomic
// flag until it has. What follows is even.
#include "work.h"
#include <stdatomic.h>

static _Alignas(64) atomic_int prepared;

static void *body(void *argument) {
    part *it = argument;
    if (it->index == 0) {
        compute(170000000, 1);
        atomic_store(&prepared, 1);
    }
    while (!atomic_load(&prepared)) __asm__ volatile("" ::: "memory");
    compute(330000000 / it->threads, it->index + 1);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
