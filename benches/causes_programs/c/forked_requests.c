// Servers that fork a process for each request, and wait until it has answered. With a second
// argument, the first of them gets three times as many as each of the others.
#include "work.h"
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 60 };

static int serve(int requests) {
    for (int i = 0; i < requests; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(compute(6000000, i + 1) == 0);
        waitpid(child, NULL, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    int servers = argc > 1 ? number(argv[1]) : 1;
    int first = argc > 2 ? 3 : 1, share = REQUESTS / (servers - 1 + first);
    for (int i = 0; i < servers; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(serve(i == 0 ? first * share : share));
    }
    while (wait(NULL) > 0) {}
}
