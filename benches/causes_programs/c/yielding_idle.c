// A pool of N threads of which at most two have work; the others ask for work again and again, and
// yield the CPU in between.
#include "work.h"
#include <sched.h>
#include <stdatomic.h>

static atomic_int busy, ended;

static void *body(void *argument) {
    part *it = argument;
    if (it->index < 2) {
        compute(400000000 / (it->threads < 2 ? 1 : 2), it->index + 1);
        if (atomic_fetch_sub(&busy, 1) == 1) atomic_store(&ended, 1);
    }
    while (!atomic_load(&ended)) sched_yield();
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    busy = threads < 2 ? 1 : 2;
    in_threads(threads, body);
}
