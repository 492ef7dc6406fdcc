/* Threads that divide passes over memory among them: each copies blocks of its own that are larger
   than the caches.

   stream THREADS PASSES MEGABYTES */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long passes;
static size_t bytes;

static void *worker(void *argument) {
    (void)argument;
    char *from = malloc(bytes), *to = malloc(bytes);
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (long pass = 0; pass < passes; pass++) {
        from[pass % bytes] = (char)pass;
        memcpy(to, from, bytes);
        __asm__ volatile("" ::"r"(to) : "memory");
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "stream THREADS PASSES MEGABYTES\n");
        return 2;
    }
    int threads = atoi(arguments[1]);
    passes = atol(arguments[2]) / threads;
    bytes = (size_t)atol(arguments[3]) << 20;
    pthread_t *started = calloc(threads, sizeof *started);
    for (long number = 0; number < threads; number++)
        pthread_create(&started[number], NULL, worker, NULL);
    for (int number = 0; number < threads; number++)
        pthread_join(started[number], NULL);
    return 0;
}
