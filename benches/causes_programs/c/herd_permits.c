// Whoever adds a task posts a semaphore once for each thread, so that all of them look for it; one
// finds it, the others have come in vain.
#include "work.h"
#include <semaphore.h>
#include <stdatomic.h>

enum { TASKS = 7000 };
static sem_t come, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int queued, ended, threads;

static void *body(void *argument) {
    part *it = argument;
    for (;;) {
        sem_wait(&come);
        pthread_mutex_lock(&lock);
        int found = queued > 0, over = ended && !found;
        queued -= found;
        pthread_mutex_unlock(&lock);
        if (over) return NULL;
        if (!found) continue;
        compute(20000, it->index + 1);
        sem_post(&room);
    }
}

static void *feed(void *unused) {
    for (int i = 0; i <= TASKS; i++) {
        if (i < TASKS) sem_wait(&room);
        pthread_mutex_lock(&lock);
        if (i < TASKS) queued++;
        else ended = 1;
        pthread_mutex_unlock(&lock);
        for (int t = 0; t < threads; t++) sem_post(&come);
    }
    return unused;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? number(argv[1]) : 1;
    sem_init(&come, 0, 0);
    sem_init(&room, 0, 2);
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed, NULL);
    in_threads(threads, body);
    pthread_join(feeder, NULL);
}
