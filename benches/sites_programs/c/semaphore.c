// A semaphore with one permit, taken in two functions.
#include "plant.h"

#include <semaphore.h>

static sem_t permit;
static uint64_t total = 1;

static __attribute__((noinline)) void borrow(int thread) {
    WAIT(thread, 1, sem_wait(&permit));  // borrow
    total = compute(60000 + total % 50000, total);
    sem_post(&permit);
}

static __attribute__((noinline)) void lend(int thread) {
    WAIT(thread, 2, sem_wait(&permit));  // lend
    total = compute(50000 + total % 40000, total);
    sem_post(&permit);
}

static void turn(int thread, uint64_t round) {
    if (round % 2)
        borrow(thread);
    else
        lend(thread);
    compute(2000, round);
}

int main(int argc, char **argv) {
    sem_init(&permit, 0, 1);
    return plant(argc > 1 ? atoi(argv[1]) : 4);
}
