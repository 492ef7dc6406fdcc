// A lock of our own: it spins for a moment and then sleeps in a futex. It is held for two thirds of
// each operation, and only one thread can hold it.
#define _GNU_SOURCE
#include "work.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, TAKEN, WANTED, SPINS = 200 };
static _Alignas(64) atomic_int word;
static _Alignas(64) uint64_t shared = 1;

static void take(void) {
    for (int i = 0; i < SPINS; i++) {
        int seen = FREE;
        if (atomic_load_explicit(&word, memory_order_relaxed) == FREE &&
            atomic_compare_exchange_strong(&word, &seen, TAKEN)) {
            return;
        }
        __builtin_ia32_pause();
    }
    while (atomic_exchange(&word, WANTED) != FREE) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, WANTED, NULL, NULL, 0);
    }
}

static void give(void) {
    if (atomic_exchange(&word, FREE) == WANTED) {
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 20000 / it->threads; i++) {
        own = compute(5000 + (own >> 33) % 10000, own);
        take();
        shared = compute(10000 + (shared >> 33) % 20000, shared);
        give();
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
