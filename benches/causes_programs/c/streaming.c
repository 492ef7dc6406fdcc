// Copies 64 MB again and again, a part in each thread: the memory's bandwidth.
#include "work.h"
#include <string.h>

enum { BYTES = 64 << 20, ROUNDS = 100 };
static char *from, *to;

static void *body(void *argument) {
    part *it = argument;
    size_t size = BYTES / it->threads, at = size * it->index;
    for (int i = 0; i < ROUNDS; i++) memcpy(to + at, from + at, size);
    return NULL;
}

int main(int argc, char **argv) {
    from = malloc(BYTES);
    to = malloc(BYTES);
    memset(from, 1, BYTES);
    memset(to, 2, BYTES);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
