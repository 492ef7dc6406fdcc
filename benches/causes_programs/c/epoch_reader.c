// A loader that goes through a file again and again: all workers read chunks of 64 kB from the SAME
// descriptor, so that each gets the next one. The kernel holds the lock of the file's position for
// the whole of such a read (about 7 us, from the page cache); what follows, a sample of 1024 bytes,
// takes below 1 us. 90 % of the time is in that lock in the kernel, so two workers win next to nothing.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 65536, IN_FILE = 64, READS = 60000 };

static int data;

typedef struct {
    pthread_t id;
    int worker, workers;
    uint64_t sum;
} job;

static void *load(void *argument) {
    job *it = argument;
    unsigned char *chunk = malloc(CHUNK);
    if (!chunk) {
        abort();
    }
    uint64_t sum = 0;
    for (int i = it->worker; i < READS; i += it->workers) {
        ssize_t length;
        while ((length = read(data, chunk, CHUNK)) == 0) {
            lseek(data, 0, SEEK_SET); // the next epoch
        }
        for (ssize_t at = 0; at < length; at += 64) {
            sum += chunk[at];
        }
    }
    it->sum = sum;
    free(chunk);
    return NULL;
}

int main(int argc, char **argv) {
    int workers = argc > 1 ? atoi(argv[1]) : 1;
    const char *folder = argc > 2 ? argv[2] : "/tmp";
    char path[4096];
    snprintf(path, sizeof path, "%s/epochs.%ld", folder, (long)getpid());
    data = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (data < 0) {
        perror(path);
        return 1;
    }
    unlink(path);
    static unsigned char content[CHUNK];
    for (int i = 0; i < CHUNK; i++) {
        content[i] = (unsigned char)(i * 31 >> 3);
    }
    for (int i = 0; i < IN_FILE; i++) {
        if (write(data, content, CHUNK) != CHUNK) {
            perror(path);
            return 1;
        }
    }
    job *jobs = calloc((size_t)workers, sizeof *jobs);
    for (int i = 0; i < workers; i++) {
        jobs[i].worker = i;
        jobs[i].workers = workers;
        pthread_create(&jobs[i].id, NULL, load, &jobs[i]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < workers; i++) {
        pthread_join(jobs[i].id, NULL);
        sum += jobs[i].sum;
    }
    printf("%llu\n", (unsigned long long)sum);
    free(jobs);
    return 0;
}
