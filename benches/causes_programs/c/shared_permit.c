// Processes that share a semaphore in their memory. It has one permit, which an operation holds for 70 %
// of its time: at most one of them works there at a time.
#include "work.h"
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    sem_t permit;
    uint64_t shared;
} common;

static void work(common *all, int index, int processes) {
    uint64_t own = index + 1;
    for (int i = 0; i < 4000 / processes; i++) {
        own = compute(10000 + own % 40000, own);
        sem_wait(&all->permit);
        all->shared = compute(40000 + all->shared % 60000, all->shared);
        sem_post(&all->permit);
    }
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? number(argv[1]) : 1;
    common *all =
        mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || sem_init(&all->permit, 1, 1) != 0) return 1;
    all->shared = 1;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(all, i, processes);
            _exit(0);
        }
        if (child < 0) return 1;
    }
    while (wait(NULL) > 0) {}
}
