// Threads that map, touch and unmap memory against each other, and take turns at a lock in between.
// mappers THREADS ROUNDS: the rounds are divided among the threads.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 64 << 10, PAGE = 4 << 10, HELD = 20000 };

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t total = 1;
static long rounds;

static void change(void) {
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    for (int at = 0; at < BYTES; at += PAGE) memory[at] = 1;
    munmap(memory, BYTES);
}

static void *body(void *argument) {
    for (long round = 0; round < rounds; round++) {
        change();
        pthread_mutex_lock(&table_mutex);
        for (int i = 0; i < HELD; i++) total = total * 6364136223846793005u + 1;
        pthread_mutex_unlock(&table_mutex);
    }
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "mappers THREADS ROUNDS\n");
        return 2;
    }
    int threads = atoi(argv[1]);
    rounds = atol(argv[2]) / threads;
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, body, NULL) != 0) return 1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}
