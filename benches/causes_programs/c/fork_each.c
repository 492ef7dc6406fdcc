// A process for each small task: most of the time goes to making and ending processes.
#include "work.h"
#include <sys/wait.h>
#include <unistd.h>

static void *body(void *argument) {
    part *it = argument;
    for (int i = 0; i < 1500 / it->threads; i++) {
        pid_t child = fork();
        if (child == 0) _exit(compute(20000, i + 1) == 0);
        if (child < 0 || waitpid(child, NULL, 0) < 0) exit(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
