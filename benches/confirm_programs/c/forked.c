/* Processes that share a mutex in common memory: as many as THREADS, of one thread each.

   forked KIND THREADS OPERATIONS HELD APART */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct common {
    pthread_mutex_t lock;
    unsigned long result;
} *common;

static __attribute__((noinline)) unsigned long work(unsigned long seed, long steps) {
    for (long step = 0; step < steps; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static __attribute__((noinline)) unsigned long add(unsigned long seed, long steps) {
    pthread_mutex_lock(&common->lock);
    common->result += seed = work(seed, steps);
    pthread_mutex_unlock(&common->lock);
    return seed;
}

int main(int count, char **arguments) {
    if (count != 6)
        return 2;
    long processes = atol(arguments[2]), operations = atol(arguments[3]) / processes;
    long held = atol(arguments[4]), apart = atol(arguments[5]);
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&common->lock, &how);
    for (long number = 0; number < processes; number++)
        if (fork() == 0) {
            unsigned long seed = 88172645463325252UL + (unsigned long)number;
            for (long done = 0; done < operations; done++)
                seed = work(add(seed, held), apart);
            exit(0);
        }
    while (wait(NULL) > 0)
        ;
    printf("%lu\n", common->result);
    return 0;
}
