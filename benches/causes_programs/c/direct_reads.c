// Threads that read blocks of one file past the page cache: the disk, not the CPUs.
#define _GNU_SOURCE
#include "work.h"
#include <fcntl.h>
#include <unistd.h>

enum { BLOCK = 64 * 1024, BLOCKS = 512 };
static char path[4096];

static void *body(void *argument) {
    part *it = argument;
    void *block;
    int file = open(path, O_RDONLY | O_DIRECT);
    if (file < 0 || posix_memalign(&block, 4096, BLOCK) != 0) exit(1);
    for (int i = 0; i < 2000 / it->threads; i++) {
        off_t at = (off_t)((i * 37 + it->index * 211) % BLOCKS) * BLOCK;
        if (pread(file, block, BLOCK, at) != BLOCK) exit(1);
    }
    close(file);
    return NULL;
}

int main(int argc, char **argv) {
    static char block[BLOCK] = {1};
    snprintf(path, sizeof path, "%s/direct", argc > 2 ? argv[2] : ".");
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (file < 0) return 1;
    for (int i = 0; i < BLOCKS; i++) {
        if (write(file, block, BLOCK) != BLOCK) return 1;
    }
    if (fdatasync(file) != 0) return 1;
    close(file);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    unlink(path);
}
