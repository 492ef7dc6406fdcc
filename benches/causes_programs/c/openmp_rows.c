// OpenMP divides the rows of a triangle evenly, so the last threads get the longest ones and the
// others wait at the end of the loop, again in each of 30 rounds.
#include "work.h"

enum { ROWS = 400, ROUNDS = 30 };
static volatile uint64_t sums[ROWS];

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int row = 0; row < ROWS; row++) sums[row] = compute(160 * (uint64_t)row, row);
    }
}
