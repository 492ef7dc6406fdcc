// Threads that allocate and free blocks too large for their caches, from one arena under one lock.
#include "work.h"
#include <malloc.h>

enum { KEPT = 64 };

static void *body(void *argument) {
    part *it = argument;
    void *kept[KEPT] = {NULL};
    uint64_t random = it->index + 1;
    for (long i = 0; i < 6000000 / it->threads; i++) {
        random = compute(1, random);
        free(kept[i % KEPT]);
        kept[i % KEPT] = malloc(1500 + (random >> 40) % 2000);
        if (kept[i % KEPT] == NULL) exit(1);
    }
    for (int i = 0; i < KEPT; i++) free(kept[i]);
    return NULL;
}

int main(int argc, char **argv) {
    mallopt(M_ARENA_MAX, 1);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
