// A pool of many threads whose queue wakes one of them for each task, and always has some: all that is
// woken works, there are only more threads than CPUs.
#include "work.h"

enum { TASKS = 2000, PLACES = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queued, ended;

static void *body(void *argument) {
    part *it = argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (queued == 0 && !ended) pthread_cond_wait(&filled, &lock);
        int found = queued > 0;
        queued -= found;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
        if (!found) return NULL;
        compute(200000, it->index + 1);
    }
}

static void *feed(void *unused) {
    for (int i = 0; i < TASKS; i++) {
        pthread_mutex_lock(&lock);
        while (queued == PLACES) pthread_cond_wait(&emptied, &lock);
        queued++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    ended = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed, NULL);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    pthread_join(feeder, NULL);
}
