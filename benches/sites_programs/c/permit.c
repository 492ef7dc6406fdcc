// A lock that is made of a mutex and a condition, and wakes all that wait when it is given back.
#include "plant.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;
static int taken;
static uint64_t total = 1;

static void take(int thread) {
    WAIT(thread, 1, pthread_mutex_lock(&mutex));  // take
    while (taken) WAIT(thread, 2, pthread_cond_wait(&given_back, &mutex));  // take
    taken = 1;
    pthread_mutex_unlock(&mutex);
}

static void give_back(int thread) {
    WAIT(thread, 3, pthread_mutex_lock(&mutex));  // give_back
    taken = 0;
    pthread_cond_broadcast(&given_back);
    pthread_mutex_unlock(&mutex);
}

static void turn(int thread, uint64_t round) {
    take(thread);
    total = compute(60000 + total % 50000, total);
    give_back(thread);
    compute(2000, round);
}

int main(int argc, char **argv) { return plant(argc > 1 ? atoi(argv[1]) : 4); }
