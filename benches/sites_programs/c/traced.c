// Threads that take turns at a mutex, and one that looks whether any of them is traced or stopped.
// traced SECONDS THREADS: reports how often it looked (`looks`) and saw that (`traced`).
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_over;
static uint64_t total = 1;

static void *body(void *argument) {
    while (!is_over) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 20000; i++) total = total * 6364136223846793005u + 1;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

// Has the thread a tracer, or is it stopped by one?
static int is_traced(const char *thread) {
    char path[300], line[200];
    int found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *status = fopen(path, "r");
    if (!status) return 0;
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "TracerPid:", 10) == 0) found |= atoi(line + 10) != 0;
        if (strncmp(line, "State:", 6) == 0) found |= strstr(line, "t (tracing stop)") != NULL;
    }
    fclose(status);
    return found;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int threads = atoi(argv[2]);
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, body, NULL);
    long looks = 0, traced = 0;
    for (double end = now() + atof(argv[1]); now() < end;) {
        DIR *tasks = opendir("/proc/self/task");
        for (struct dirent *task; (task = readdir(tasks));)
            if (task->d_name[0] != '.') {
                looks++;
                traced += is_traced(task->d_name);
            }
        closedir(tasks);
    }
    is_over = 1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    const char *channel = getenv("CONCURVE_REPORT");
    FILE *report = channel ? fdopen(atoi(channel), "w") : stdout;
    fprintf(report, "{\"indicator\":\"looks\",\"value\":%ld}\n", looks);
    fprintf(report, "{\"indicator\":\"traced\",\"value\":%ld}\n", traced);
    return 0;
}
