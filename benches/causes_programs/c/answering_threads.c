// Processes that ask one more process by pipes. It has a thread for each of them, and these share
// nothing: so of each pair one runs. An answer takes twice as long as what follows from it.
#include "work.h"
#include <sys/wait.h>
#include <unistd.h>

enum { QUESTIONS = 2000 };
static int there[64][2], back[64][2];

static void *answer(void *given) {
    part *own = given;
    uint64_t value;
    while (read(there[own->index][0], &value, sizeof value) == sizeof value) {
        value = compute(100000, value);
        if (write(back[own->index][1], &value, sizeof value) != sizeof value) exit(1);
    }
    return NULL;
}

static int ask(int index, int questions) {
    uint64_t value = 1;
    for (int i = 0; i < questions; i++) {
        value = compute(50000, value);
        if (write(there[index][1], &value, sizeof value) != sizeof value) return 1;
        if (read(back[index][0], &value, sizeof value) != sizeof value) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    int workers = argc > 1 ? number(argv[1]) : 1;
    for (int i = 0; i < workers; i++) {
        if (pipe(there[i]) != 0 || pipe(back[i]) != 0) return 1;
    }
    for (int i = 0; i <= workers; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child > 0) continue;
        if (i < workers) _exit(ask(i, QUESTIONS / workers));
        for (int other = 0; other < workers; other++) close(there[other][1]);
        in_threads(workers, answer);
        _exit(0);
    }
    for (int i = 0; i < workers; i++) close(there[i][1]);
    while (wait(NULL) > 0) {}
}
