// Processes that do a task every 2 ms, each by a clock of its own, for all that there are.
#include "work.h"
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 160 };

static int tasks(int count) {
    uint64_t seed = 1;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; i < count; i++) {
        seed = compute(300000, seed);
        next.tv_nsec += 2000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return seed == 0;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(tasks(TASKS / processes));
    }
    while (wait(NULL) > 0) {}
}
