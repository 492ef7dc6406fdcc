// Threads that change the protection of pages of their own: each call takes the kernel's lock of the
// address space for writing.
#include "work.h"
#include <sys/mman.h>

static void *body(void *argument) {
    part *it = argument;
    enum { BYTES = 65536 };
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) exit(1);
    for (int at = 0; at < BYTES; at += 4096) own[at] = 1;
    for (int i = 0; i < 160000 / it->threads; i++) {
        if (mprotect(own, BYTES, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ) != 0) exit(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
