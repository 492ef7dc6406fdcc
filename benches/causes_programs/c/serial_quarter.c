// A quarter of the work is done by the main thread, before and after the parallel part.
#include "work.h"

static void *body(void *argument) {
    part *it = argument;
    compute(300000000 / it->threads, it->index);
    return NULL;
}

int main(int argc, char **argv) {
    compute(50000000, 1);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    compute(50000000, 2);
}
