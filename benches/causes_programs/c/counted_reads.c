// Readers that look up independent keys, and count each look-up in one shared counter.
#include "work.h"
#include <stdatomic.h>

enum { KEYS = 4096 };
static uint32_t table[KEYS];
static _Alignas(64) atomic_ulong lookups;
static _Alignas(64) volatile uint64_t sink;

static void *body(void *argument) {
    part *it = argument;
    uint64_t key = it->index + 1, sum = 0;
    for (long i = 0; i < 30000000 / it->threads; i++) {
        key = compute(2, key);
        sum += table[key >> 52];
        atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);
    }
    sink = sum;
    return NULL;
}

int main(int argc, char **argv) {
    for (uint32_t i = 0; i < KEYS; i++) table[i] = i;
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
