// Threads that share nothing: each does an equal part of the work.
#include "work.h"

static void *body(void *argument) {
    part *it = argument;
    compute(400000000 / it->threads, it->index);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
