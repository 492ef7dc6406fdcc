// Threads that map, touch and unmap 64 KiB again and again: the kernel's lock of the address space.
#include "work.h"
#include <sys/mman.h>

static void *body(void *argument) {
    part *it = argument;
    for (int i = 0; i < 40000 / it->threads; i++) {
        char *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) exit(1);
        for (int at = 0; at < 65536; at += 4096) memory[at] = 1;
        munmap(memory, 65536);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
