// Processes that ask a helper process of their own by pipes, and wait for each answer: so of each
// pair one runs, and pairs share nothing.
#include "work.h"
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTIONS = 2000 };

static int pair(int questions) {
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    pid_t helper = fork();
    if (helper < 0) return 1;
    uint64_t value = 1;
    if (helper == 0) {
        close(there[1]);
        while (read(there[0], &value, sizeof value) == sizeof value) {
            value = compute(100000, value);
            if (write(back[1], &value, sizeof value) != sizeof value) _exit(1);
        }
        _exit(0);
    }
    for (int i = 0; i < questions; i++) {
        value = compute(50000, value);
        if (write(there[1], &value, sizeof value) != sizeof value) return 1;
        if (read(back[0], &value, sizeof value) != sizeof value) return 1;
    }
    close(there[1]);
    return waitpid(helper, NULL, 0) != helper;
}

int main(int argc, char **argv) {
    int workers = argc > 1 ? number(argv[1]) : 1;
    for (int i = 0; i < workers; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(pair(QUESTIONS / workers));
    }
    while (wait(NULL) > 0) {}
}
