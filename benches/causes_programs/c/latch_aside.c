// Statistics of all threads in one line of the cache, which is what costs; a lock that spins is taken
// once for some thousands of them, and hardly ever waited for.
#include "work.h"
#include <stdatomic.h>

static _Alignas(64) atomic_ulong seen[8];
static _Alignas(64) atomic_int taken;
static _Alignas(64) uint64_t reported;

static void *body(void *argument) {
    part *it = argument;
    for (int i = 0; i < 80000000 / it->threads; i++) {
        atomic_fetch_add_explicit(&seen[it->index % 8], 1, memory_order_relaxed);
        if (i % 4096 == 0) {
            while (atomic_exchange(&taken, 1)) __builtin_ia32_pause();
            reported = compute(100, reported + i);
            atomic_store(&taken, 0);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
