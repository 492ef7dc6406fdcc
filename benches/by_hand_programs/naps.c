/* A thread that works for 20 us and sleeps for 100 us: naps SECONDS. Prints how often a second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    struct timespec nap = {0, 100000};
    long naps = 0;
    double begin = now();
    for (; now() - begin < seconds; naps++) {
        for (double from = now(); now() - from < 20e-6;)
            ;
        nanosleep(&nap, NULL);
    }
    printf("%.1f a second\n", naps / (now() - begin));
    return 0;
}
