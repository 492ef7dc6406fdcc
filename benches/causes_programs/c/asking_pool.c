// Threads that wait for a task for 5 ms, look whether they are to end, and wait again. The first
// thread has one for them every 10 ms, so that they are idle however many they are.
#include "work.h"
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 40 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_there = PTHREAD_COND_INITIALIZER;
static int waiting;
static bool ended;

static void *worker(void *given) {
    (void)given;
    uint64_t seed = 1;
    pthread_mutex_lock(&lock);
    while (!ended || waiting) {
        if (!waiting) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 5000000;
            if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
            }
            pthread_cond_timedwait(&is_there, &lock, &until);
            continue;
        }
        waiting--;
        pthread_mutex_unlock(&lock);
        seed = compute(200000, seed);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return (void *)(seed | 1);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? number(argv[1]) : 1;
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, worker, NULL) != 0) return 1;
    }
    for (int i = 0; i < TASKS; i++) {
        usleep(10000);
        pthread_mutex_lock(&lock);
        waiting++;
        pthread_cond_signal(&is_there);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    ended = true;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}
