// OpenMP with threads that spin at the end of each loop and never sleep: one part, another in each
// round, has three times the work of the others.
#define _GNU_SOURCE
#include <unistd.h>

#include "work.h"

enum { ROUNDS = 200, PARTS = 64 };
static volatile uint64_t sums[PARTS * 8];

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    if (threads > PARTS) return 2;
    // The runtime reads it before main.
    if (getenv("OMP_WAIT_POLICY") == NULL) {
        char *again[] = {argv[0], argc > 1 ? argv[1] : (char *)"1", NULL};
        setenv("OMP_WAIT_POLICY", "active", 1);
        execv("/proc/self/exe", again);
        return 1;
    }
    uint64_t share = 2000000 / (threads + 2);
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int index = 0; index < threads; index++) {
            int slow = threads == 1 || round % threads == index;
            sums[8 * index] = compute(slow ? 3 * share : share, index);
        }
    }
}
