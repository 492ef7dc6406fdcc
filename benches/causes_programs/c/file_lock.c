// Processes that take turns at one file: 80 % of the work of each is done under its lock.
#include "work.h"
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static void take_turns(const char *path, int turns) {
    FILE *file = fopen(path, "w"); // an open file of its own: flock belongs to it
    if (file == NULL) _exit(1);
    for (int i = 0; i < turns; i++) {
        flock(fileno(file), LOCK_EX);
        compute(160000 + i % 7 * 10000, i);
        flock(fileno(file), LOCK_UN);
        compute(30000 + i % 5 * 10000, i);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    char path[4096];
    snprintf(path, sizeof path, "%s/turns-XXXXXX", argc > 2 ? argv[2] : ".");
    if (mkstemp(path) < 0) return 1;
    for (int i = 0; i < processes; i++) {
        if (fork() == 0) {
            take_turns(path, 2000 / processes);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {}
    unlink(path);
}
