/* 512 threads that each work for 200 us and sleep for 1 ms, in turns: crowd SECONDS. Prints how often a second. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 512, WORK = 200000 };

static atomic_long rounds;
static double until;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void *work(void *unused) {
    struct timespec nap = {0, 1000000};
    while (now() < until) {
        for (volatile long turn = 0; turn < WORK; turn++)
            ;
        atomic_fetch_add(&rounds, 1);
        nanosleep(&nap, NULL);
    }
    return unused;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1, begin = now();
    static pthread_t threads[THREADS];
    until = begin + seconds;
    for (int index = 0; index < THREADS; index++)
        if (pthread_create(&threads[index], NULL, work, NULL))
            return 1;
    for (int index = 0; index < THREADS; index++)
        pthread_join(threads[index], NULL);
    printf("%.1f a second\n", rounds / (now() - begin));
    return 0;
}
