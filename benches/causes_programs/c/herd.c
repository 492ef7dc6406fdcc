// One queue, one condition: whoever adds a task wakes all that wait, of which one finds the task
// and the others wait again. A task is short.
#include "work.h"

enum { TASKS = 7000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queued, ended;

static void *body(void *argument) {
    part *it = argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (queued == 0 && !ended) pthread_cond_wait(&changed, &lock);
        int found = queued > 0;
        queued -= found;
        pthread_mutex_unlock(&lock);
        if (!found) return NULL;
        compute(15000, it->index + 1);
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&changed); // whoever adds waits for room
        pthread_mutex_unlock(&lock);
    }
}

static void *feed(void *unused) {
    for (int i = 0; i < TASKS; i++) {
        pthread_mutex_lock(&lock);
        while (queued > 0) pthread_cond_wait(&changed, &lock);
        queued++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    ended = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t feeder;
    pthread_create(&feeder, NULL, feed, NULL);
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    pthread_join(feeder, NULL);
}
