// Threads that append short lines to one file, each by a write of its own and through a file of its
// own: the kernel lets one at a time append.
#define _GNU_SOURCE
#include "work.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char path[4096];

static void *body(void *argument) {
    part *it = argument;
    char line[100];
    memset(line, 'a' + it->index % 26, sizeof line);
    int file = open(path, O_WRONLY | O_APPEND);
    if (file < 0) exit(1);
    for (int i = 0; i < 300000 / it->threads; i++) {
        if (write(file, line, sizeof line) != sizeof line) exit(1);
    }
    close(file);
    return NULL;
}

int main(int argc, char **argv) {
    snprintf(path, sizeof path, "%s/appended", argc > 2 ? argv[2] : ".");
    close(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600));
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    unlink(path);
}
