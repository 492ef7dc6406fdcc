// A semaphore with one permit, which each operation holds for 70 % of its time.
#include "work.h"
#include <semaphore.h>

static sem_t permit;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 4000 / it->threads; i++) {
        own = compute(10000 + own % 40000, own);
        sem_wait(&permit);
        shared = compute(40000 + shared % 60000, shared);
        sem_post(&permit);
    }
    return NULL;
}

int main(int argc, char **argv) {
    sem_init(&permit, 0, 1);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
