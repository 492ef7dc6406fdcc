/* What the programs share: the command line, threads, and computing that no compiler leaves out.

   PROGRAM KIND THREADS OPERATIONS HELD APART
   Threads divide operations among them. HELD is the work with the lock, APART that without it; what a
   unit of it is, each program says.

   A program has `prepare`, once, and `operation`, which a thread does again and again. */
#pragma once
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind;
static long threads, operations, held, apart;
static unsigned long result;

static void prepare(void);
static void operation(long number, unsigned long *seed);

static __attribute__((noinline, unused)) unsigned long work(unsigned long seed, long steps) {
    for (long step = 0; step < steps; step++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static inline unsigned long drawn(unsigned long *seed) { return *seed = work(*seed, 1); }

static void *worker(void *argument) {
    long number = (long)argument;
    unsigned long seed = 88172645463325252UL + (unsigned long)number;
    for (long done = 0; done < operations / threads; done++)
        operation(number, &seed);
    return (void *)seed;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "%s KIND THREADS OPERATIONS HELD APART\n", arguments[0]);
        return 2;
    }
    kind = arguments[1];
    threads = atol(arguments[2]);
    operations = atol(arguments[3]);
    held = atol(arguments[4]);
    apart = atol(arguments[5]);
    prepare();
    pthread_t *started = calloc((size_t)threads, sizeof *started);
    for (long number = 0; number < threads; number++)
        pthread_create(&started[number], NULL, worker, (void *)number);
    for (long number = 0; number < threads; number++)
        pthread_join(started[number], NULL);
    printf("%lu\n", result);
    return 0;
}
