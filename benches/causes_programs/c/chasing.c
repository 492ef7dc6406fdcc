// Threads that follow chains through one table of 128 MB, which nobody writes any more: each step
// waits for the memory. Two such waits at once take no longer than one, so nothing limits it.
#include "work.h"

enum { BITS = 25, STEPS = 5000000 };
static const uint32_t MASK = (1u << BITS) - 1;
static uint32_t *table;
static pthread_barrier_t filled;

static void *body(void *argument) {
    part *it = argument;
    uint64_t size = (uint64_t)MASK + 1, end = size * (it->index + 1) / it->threads;
    // One cycle through all places.
    for (uint64_t i = size * it->index / it->threads; i < end; i++) {
        table[i] = (i * 1664525u + 1013904223u) & MASK;
    }
    pthread_barrier_wait(&filled);
    uint32_t at = 12345u * (it->index + 1);
    for (long i = 0; i < STEPS / it->threads; i++) at = table[at];
    return (void *)(uintptr_t)at;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    table = malloc(sizeof *table << BITS);
    if (table == NULL) return 1;
    pthread_barrier_init(&filled, NULL, threads);
    in_threads(threads, body);
}
