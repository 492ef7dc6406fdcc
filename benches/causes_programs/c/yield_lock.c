// A lock of one word, held for 70 % of each operation; who does not get it calls sched_yield and
// tries again.
#include "work.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int taken;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 4000 / it->threads; i++) {
        own = compute(10000 + own % 40000, own);
        while (atomic_exchange(&taken, 1)) sched_yield();
        shared = compute(40000 + shared % 60000, shared);
        atomic_store(&taken, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
