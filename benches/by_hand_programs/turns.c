/* Two threads on one CPU that pass a byte to and fro through pipes: turns SECONDS. Prints how often a second. On two
   CPUs it would matter most how deeply the other one sleeps, which varies. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1)
        if (write(back[1], &byte, 1) != 1)
            break;
    return unused;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    pthread_t thread;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) || pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
        return 1;
    long turns = 0;
    double begin = now();
    for (char byte = 0; now() - begin < seconds; turns++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    printf("%.1f a second\n", turns / (now() - begin));
    return 0;
}
