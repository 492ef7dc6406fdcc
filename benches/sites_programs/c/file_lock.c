// A lock on a file, taken in two functions, by descriptors of each thread's own.
#include "plant.h"

#include <fcntl.h>
#include <sys/file.h>

static int files[THREADS_MAX];
static uint64_t total = 1;

static __attribute__((noinline)) void append(int thread) {
    WAIT(thread, 1, flock(files[thread], LOCK_EX));  // append
    total = compute(60000 + total % 50000, total);
    flock(files[thread], LOCK_UN);
}

static __attribute__((noinline)) void rotate(int thread) {
    WAIT(thread, 2, flock(files[thread], LOCK_EX));  // rotate
    total = compute(50000 + total % 40000, total);
    flock(files[thread], LOCK_UN);
}

static void turn(int thread, uint64_t round) {
    if (round % 2)
        append(thread);
    else
        rotate(thread);
    compute(2000, round);
}

int main(int argc, char **argv) {
    char name[] = "/tmp/site-plant-XXXXXX";
    int first = mkstemp(name);
    for (int i = 0; i < THREADS_MAX; i++)
        if ((files[i] = open(name, O_RDWR)) < 0) return 1;
    unlink(name);
    close(first);
    return plant(argc > 1 ? atoi(argv[1]) : 4);
}
