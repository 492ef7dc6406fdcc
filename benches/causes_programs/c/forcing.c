// Threads that write 4 KiB and force them to the disk, each in a file of its own.
#include "work.h"
#include <fcntl.h>
#include <unistd.h>

static const char *folder;

static void *body(void *argument) {
    part *it = argument;
    char path[4096], block[4096] = {1};
    snprintf(path, sizeof path, "%s/forced-%d", folder, it->index);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file < 0) exit(1);
    for (int i = 0; i < 400 / it->threads; i++) {
        if (pwrite(file, block, sizeof block, 0) < 0 || fdatasync(file) != 0) exit(1);
    }
    close(file);
    unlink(path);
    return NULL;
}

int main(int argc, char **argv) {
    folder = argc > 2 ? argv[2] : ".";
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
