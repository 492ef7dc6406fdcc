// Each thread keeps statistics of its own, by ordinary stores; the structures stand in a row, so
// that neighbours have a line of the cache in common.
#include "work.h"

typedef struct {
    volatile uint64_t requests, bytes;
    volatile uint64_t slowest;
} statistics;

static _Alignas(64) statistics all[64];

static void *body(void *argument) {
    part *it = argument;
    statistics *own = &all[it->index % 64];
    uint64_t seed = it->index + 1;
    for (long i = 0; i < 200000000 / it->threads; i++) {
        seed = compute(1, seed);
        own->requests++;
        own->bytes += seed >> 54;
        if (seed >> 32 > own->slowest) own->slowest = seed >> 32;
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
