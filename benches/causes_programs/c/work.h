// What the planted C programs share: computing that no compiler leaves out, and threads.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// About a nanosecond an iteration.
static inline uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

static inline long number(const char *text) { return strtol(text, NULL, 10); }

typedef struct {
    int index;
    int threads;
} part;

// Runs `body` in so many threads and waits for them.
static inline void in_threads(int threads, void *(*body)(void *)) {
    pthread_t ids[threads];
    part parts[threads];
    for (int i = 0; i < threads; i++) {
        parts[i] = (part){i, threads};
        if (pthread_create(&ids[i], NULL, body, &parts[i]) != 0) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}
