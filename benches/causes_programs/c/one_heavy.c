// The first thread has 70 % of the work, the others share the rest.
#include "work.h"

static void *body(void *argument) {
    part *it = argument;
    uint64_t all = 400000000;
    uint64_t own = it->threads == 1 ? all : it->index == 0 ? all * 7 / 10 : all * 3 / 10 / (it->threads - 1);
    compute(own, it->index);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
