// Rounds whose end all wait for at a barrier of the program's own, which only spins. The last thread has
// three times the work of the others in each round.
#include "work.h"
#include <stdatomic.h>

enum { ROUNDS = 200, UNITS = 1500000 };
static _Alignas(64) atomic_int arrived;
static _Alignas(64) atomic_int ended;

static void *body(void *argument) {
    part *it = argument;
    int shares = it->threads + 2;
    for (int round = 0; round < ROUNDS; round++) {
        int mine = it->threads == 1 ? shares : it->index == it->threads - 1 ? 3 : 1;
        compute((uint64_t)UNITS * mine / shares, round + 1);
        if (atomic_fetch_add(&arrived, 1) == it->threads - 1) {
            atomic_store(&arrived, 0);
            atomic_store(&ended, round + 1);
        }
        while (atomic_load(&ended) <= round) __builtin_ia32_pause();
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
