// Processes that take turns by a file which only one of them can create. Who does not get it sleeps,
// and tries again, longer each time. The file is there for two thirds of a task.
#include "work.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 120 };

static void nap(long microseconds) {
    struct timespec length = {0, microseconds * 1000};
    nanosleep(&length, NULL);
}

static int tasks(const char *path, int count) {
    uint64_t seed = 1;
    for (int i = 0; i < count; i++) {
        int file;
        for (long wait = 500; (file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600)) < 0; wait *= 2)
            nap(wait < 4000 ? wait : 4000);
        seed = compute(2000000, seed);
        close(file);
        unlink(path);
        seed = compute(1000000, seed);
    }
    return seed == 0;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    if (argc < 3 || chdir(argv[2]) != 0) return 2;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(tasks("turn.lock", TASKS / processes));
    }
    while (wait(NULL) > 0) {}
}
