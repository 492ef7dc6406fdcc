// A reader-writer lock with readers and writers.
#include "plant.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t total = 1;

static __attribute__((noinline)) uint64_t look_up(int thread) {
    WAIT(thread, 1, pthread_rwlock_rdlock(&table_lock));  // look_up
    uint64_t found = compute(40000 + total % 30000, total);
    pthread_rwlock_unlock(&table_lock);
    return found;
}

static __attribute__((noinline)) void change(int thread) {
    WAIT(thread, 2, pthread_rwlock_wrlock(&table_lock));  // change
    total = compute(60000 + total % 50000, total);
    pthread_rwlock_unlock(&table_lock);
}

static void turn(int thread, uint64_t round) {
    if (round % 2)
        look_up(thread);
    else
        change(thread);
    compute(2000, round);
}

int main(int argc, char **argv) { return plant(argc > 1 ? atoi(argv[1]) : 4); }
