// Many small system calls that hinder nobody: records of 512 bytes are read from eight small files
// in the page cache. Each file has one descriptor, which one worker uses, so no inode, page, file
// or offset (pread) is shared, and every worker has as many files as the others. Most of the time
// passes in the kernel, yet it halves with two workers: nothing limits.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 8, RECORD = 512, RECORDS = 512, READS = 130000, MOST = 64 };

typedef struct {
    int first, step;
    uint64_t sum;
    char apart[128];
} share;

static const char *folder;

static void name_of(int file, char *name, size_t size) {
    snprintf(name, size, "%s/records.%d", folder, file);
}

static void make(int file) {
    char name[512];
    static char content[RECORD * RECORDS];
    name_of(file, name, sizeof name);
    memset(content, file + 1, sizeof content);
    int to = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (to < 0 || write(to, content, sizeof content) != (ssize_t)sizeof content) {
        perror(name);
        exit(1);
    }
    close(to);
}

static void *read_records(void *argument) {
    share *own = argument;
    uint64_t sum = 0;
    for (int file = own->first; file < FILES; file += own->step) {
        char name[512], record[RECORD];
        name_of(file, name, sizeof name);
        int from = open(name, O_RDONLY);
        if (from < 0) exit(1);
        uint64_t random = (uint64_t)file + 1;
        for (int i = 0; i < READS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            if (pread(from, record, RECORD, (off_t)(random >> 55) * RECORD) != RECORD) exit(1);
            sum += (unsigned char)record[i % RECORD];
        }
        close(from);
    }
    own->sum = sum;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int threads = atoi(argv[1]);
    if (threads < 1 || threads > MOST) return 2;
    folder = argv[2];
    for (int file = 0; file < FILES; file++) make(file);
    static share shares[MOST];
    pthread_t all[MOST];
    for (int i = 0; i < threads; i++) {
        shares[i].first = i;
        shares[i].step = threads;
        pthread_create(&all[i], NULL, read_records, &shares[i]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        sum += shares[i].sum;
    }
    for (int file = 0; file < FILES; file++) {
        char name[512];
        name_of(file, name, sizeof name);
        unlink(name);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
