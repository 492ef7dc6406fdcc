// A fair spin lock: each takes the next ticket and spins until that is called. It is held for 70 %
// of each operation, of unequal lengths.
#include "work.h"
#include <stdatomic.h>

static _Alignas(64) atomic_uint next;
static _Alignas(64) atomic_uint called;
static _Alignas(64) uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 5000 / it->threads; i++) {
        own = compute(10000 + (own >> 33) % 30000, own);
        unsigned ticket = atomic_fetch_add(&next, 1);
        while (atomic_load_explicit(&called, memory_order_acquire) != ticket) {
            __asm__ volatile("" ::: "memory");
        }
        shared = compute(40000 + (shared >> 33) % 40000, shared);
        atomic_store_explicit(&called, ticket + 1, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
