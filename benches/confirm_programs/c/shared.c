/* Threads that divide operations among them; each adds to counters in one cache line, or, with
   "own", to a counter in a line of its own.

   shared KIND THREADS OPERATIONS */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct line {
    _Alignas(128) atomic_ulong count;
};
static struct line counters[64];
static int is_own;
static long operations;

static void *worker(void *argument) {
    atomic_ulong *counter = &counters[is_own ? (long)argument % 64 : 0].count;
    for (long done = 0; done < operations; done++)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "shared KIND THREADS OPERATIONS\n");
        return 2;
    }
    is_own = arguments[1][0] == 'o';
    int threads = atoi(arguments[2]);
    operations = atol(arguments[3]) / threads;
    pthread_t *started = calloc(threads, sizeof *started);
    for (long number = 0; number < threads; number++)
        pthread_create(&started[number], NULL, worker, (void *)number);
    for (int number = 0; number < threads; number++)
        pthread_join(started[number], NULL);
    printf("%lu\n", atomic_load(&counters[0].count));
    return 0;
}
