// A bounded queue: threads put into it and take from it in turn, and wait for two conditions.
#include "plant.h"

enum { ROOM = 1 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int filled;
static uint64_t total = 1;

static __attribute__((noinline)) void put(int thread) {
    WAIT(thread, 1, pthread_mutex_lock(&mutex));  // put
    while (filled == ROOM) WAIT(thread, 2, pthread_cond_wait(&not_full, &mutex));  // put
    filled++;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
    total = compute(50000 + total % 30000, total);
}

static __attribute__((noinline)) void take(int thread) {
    WAIT(thread, 3, pthread_mutex_lock(&mutex));  // take
    while (filled == 0) WAIT(thread, 4, pthread_cond_wait(&not_empty, &mutex));  // take
    filled--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&mutex);
    total = compute(50000 + total % 30000, total);
}

// Even threads begin with putting and odd ones with taking; then each does both in turn.
static void turn(int thread, uint64_t round) {
    static __thread uint64_t turns;
    (void)round;
    if ((turns++ + (uint64_t)thread) % 2)
        take(thread);
    else
        put(thread);
}

int main(int argc, char **argv) { return plant(argc > 1 ? atoi(argv[1]) : 4); }
