// Threads that make and remove files of their own, all in one folder: the kernel lets one of them
// at a time change the folder.
#include "work.h"
#include <fcntl.h>
#include <unistd.h>

static const char *folder;

static void *body(void *argument) {
    part *it = argument;
    char path[4096];
    for (int i = 0; i < 60000 / it->threads; i++) {
        snprintf(path, sizeof path, "%s/part-%d-%d", folder, it->index, i % 8);
        int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (file < 0 || close(file) != 0 || unlink(path) != 0) exit(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    folder = argc > 2 ? argv[2] : ".";
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
