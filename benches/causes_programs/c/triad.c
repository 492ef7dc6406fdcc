// a[i] = b[i] + s * c[i] over arrays that no cache holds, several times; OpenMP deals out the
// places.
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 8 << 20, TIMES = 32 };

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double *a = malloc(PLACES * sizeof *a), *b = malloc(PLACES * sizeof *b),
           *c = malloc(PLACES * sizeof *c);
    if (a == NULL || b == NULL || c == NULL) return 1;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < PLACES; i++) a[i] = 0, b[i] = i, c[i] = 1;
    for (int time = 0; time < TIMES; time++) {
#pragma omp parallel for num_threads(threads)
        for (long i = 0; i < PLACES; i++) a[i] = b[i] + (time + 1) * c[i];
    }
    return a[PLACES - 1] < 0;
}
