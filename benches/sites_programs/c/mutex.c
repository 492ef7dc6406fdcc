// A pthread mutex that is taken in two functions.
#include "plant.h"

pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t total = 1;

static __attribute__((noinline)) void add_left(int thread) {
    WAIT(thread, 1, pthread_mutex_lock(&table_mutex));  // add_left
    hold(thread);
    total = compute(60000 + total % 50000, total);
    release();
    pthread_mutex_unlock(&table_mutex);
}

// Its frame is larger, and of a size that is known at run time only.
static __attribute__((noinline)) void add_right(int thread, uint64_t size) {
    uint64_t own[size];
    for (uint64_t i = 0; i < size; i++) own[i] = compute(3, i);
    WAIT(thread, 2, pthread_mutex_lock(&table_mutex));  // add_right
    hold(thread);
    total = compute(60000 + own[total % size] % 50000, total);
    release();
    pthread_mutex_unlock(&table_mutex);
}

static void turn(int thread, uint64_t round) {
    if (round % 2)
        add_left(thread);
    else
        add_right(thread, 8 + round % 32);
    compute(2000, round);
}

int main(int argc, char **argv) { return plant(argc > 1 ? atoi(argv[1]) : 4); }
