// Reads of a table of 128 MiB, each of which is checked by the version of its record as those of a
// seqlock are. Nobody writes, so no read is ever done again, and nobody waits.
#include "work.h"
#include <stdatomic.h>

typedef struct {
    atomic_ulong version;
    atomic_ulong values[7];
} record;

enum { RECORDS = (128 << 20) / sizeof(record) };
static record *table;

static uint64_t read_one(record *it) {
    for (;;) {
        uint64_t version = atomic_load_explicit(&it->version, memory_order_acquire);
        if (version & 1) continue;
        uint64_t first = atomic_load_explicit(&it->values[0], memory_order_relaxed);
        uint64_t last = atomic_load_explicit(&it->values[6], memory_order_acquire);
        if (atomic_load_explicit(&it->version, memory_order_relaxed) == version) return first + last;
    }
}

static void *body(void *argument) {
    part *it = argument;
    uint64_t sum = 0, place = it->index + 1;
    for (long i = 0; i < 30000000 / it->threads; i++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        sum += read_one(&table[(place >> 32) % RECORDS]);
    }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv) {
    table = aligned_alloc(sizeof(record), (size_t)RECORDS * sizeof(record));
    for (long i = 0; i < RECORDS; i++) table[i] = (record){.version = 2 * i};
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
