// Threads that write to one pipe and read from it, a byte at a time: the kernel's lock of the pipe.
#include "work.h"
#include <unistd.h>

static int ends[2];

static void *body(void *argument) {
    part *it = argument;
    char byte = 1;
    for (int i = 0; i < 400000 / it->threads; i++) {
        if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) exit(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (pipe(ends) != 0) return 1;
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
