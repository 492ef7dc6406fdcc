// Three processes in a row, joined by pipes that hold eight items; the middle one is copied N times
// and takes half of the time of the last, which is the limit.
#define _GNU_SOURCE
#include "work.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 3000, BYTES = 512 };

static void stage(int from, int to, uint64_t iterations) {
    char item[BYTES];
    while (read(from, item, BYTES) == BYTES) {
        compute(iterations, item[0]);
        if (to >= 0 && write(to, item, BYTES) != BYTES) _exit(1);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int copies = argc > 1 ? number(argv[1]) : 1;
    int first[2], second[2];
    if (pipe(first) || pipe(second)) return 1;
    if (fcntl(first[1], F_SETPIPE_SZ, 8 * BYTES) < 0) return 1;
    if (fcntl(second[1], F_SETPIPE_SZ, 8 * BYTES) < 0) return 1;
    for (int i = 0; i < copies; i++) {
        if (fork() == 0) {
            close(first[1]);
            close(second[0]);
            stage(first[0], second[1], 60000);
        }
    }
    if (fork() == 0) {
        close(first[1]);
        close(second[1]);
        stage(second[0], -1, 120000);
    }
    close(first[0]);
    close(second[0]);
    close(second[1]);
    char item[BYTES] = {0};
    for (int i = 0; i < ITEMS; i++) {
        item[0] = (char)i;
        if (write(first[1], item, BYTES) != BYTES) return 1;
    }
    close(first[1]);
    while (wait(NULL) > 0) {}
}
