// Processes that compute and share nothing; their parent waits for them.
#include "work.h"
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child == 0) _exit(compute(400000000 / processes, i + 1) == 0);
        if (child < 0) return 1;
    }
    while (wait(NULL) > 0) {}
}
