// Processes that take snapshots by fork(): the snapshot then changes a byte in each page of the
// memory that it has inherited, and the kernel copies every page that is changed.
#include "work.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 10, PAGE = 4096 };

static int snapshots(size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise(memory, size, MADV_NOHUGEPAGE);
    memset(memory, 1, size);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t snapshot = fork();
        if (snapshot < 0) return 1;
        if (snapshot == 0) {
            for (size_t at = 0; at < size; at += PAGE) memory[at]++;
            _exit(0);
        }
        waitpid(snapshot, NULL, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) _exit(snapshots((48u << 20) / processes / PAGE * PAGE));
    }
    while (wait(NULL) > 0) {}
}
