// What the planted programs share. Each thread keeps in `truth` the number of the site at which it
// waits: at the time at which a sample finds it blocked, that is the true site. The lines with WAIT
// say which sites there are, with the function in a comment. The program prints where `truth` stands,
// and runs until its standard input ends.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 16
#define ROUNDS_ALONE 8

// A cache line for each thread.
typedef struct {
    volatile uint64_t site;
    uint64_t padding[7];
} slot;

static slot truth[THREADS_MAX];
// The thread that has the lock, where the program says it.
static volatile uint64_t holder;
static volatile uint64_t tids[THREADS_MAX];
static volatile int contended;

// A call that may wait, at the site of this number.
#define WAIT(thread, number, call)     \
    do {                               \
        truth[thread].site = (number); \
        call;                          \
        truth[thread].site = 0;        \
    } while (0)

static inline void hold(int thread) { holder = tids[thread]; }
static inline void release(void) { holder = 0; }

// About a nanosecond an iteration.
static inline uint64_t compute(uint64_t iterations, uint64_t seed) {
    for (uint64_t i = 0; i < iterations; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(seed));
    }
    return seed;
}

// What a thread does all the time; `round` decides which site comes next.
static void turn(int thread, uint64_t round);

static void *body(void *argument) {
    int thread = (int)(intptr_t)argument;
    tids[thread] = (uint64_t)gettid();
    while (!contended) usleep(1000);
    for (uint64_t round = compute(1, thread);; round = compute(1, round)) turn(thread, round >> 33);
    return NULL;
}

// Calls everything a few times alone, so that no function is bound for the first time later; then
// starts the threads and says where everything stands.
static int plant(int threads) {
    if (threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "1 to %d threads\n", THREADS_MAX);
        return 2;
    }
    for (uint64_t round = 0; round < ROUNDS_ALONE; round++) turn(0, round);
    for (int i = 0; i < threads; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, body, (void *)(intptr_t)i) != 0) {
            fprintf(stderr, "no thread\n");
            return 1;
        }
    }
    for (int i = 0; i < threads; i++)
        while (tids[i] == 0) usleep(1000);
    printf("truth %p %zu\n", (void *)truth, sizeof(slot));
    printf("holder %p\n", (void *)&holder);
    for (int i = 0; i < threads; i++) printf("thread %d %lu\n", i, (unsigned long)tids[i]);
    printf("ready\n");
    fflush(stdout);
    contended = 1;
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0);
}
