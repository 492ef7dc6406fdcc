// The area of a circle by random points: rand() of the C library has one state for all threads, and
// a lock around it.
#include "work.h"

static void *body(void *argument) {
    part *it = argument;
    long inside = 0;
    for (long i = 0; i < 18000000 / it->threads; i++) {
        double x = rand() / (double)RAND_MAX, y = rand() / (double)RAND_MAX;
        inside += x * x + y * y < 1;
    }
    return (void *)inside;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
