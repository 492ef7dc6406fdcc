// One producer makes 2,000 items, N consumers use them, through a queue of 16. Making an item takes
// twice as long as using it, so that the producer is the limit from the first consumer on.
#include "work.h"

enum { ITEMS = 2000, ROOM = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int queued, ended;

static void *consume(void *argument) {
    part *it = argument;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (queued == 0 && !ended) pthread_cond_wait(&not_empty, &lock);
        int found = queued > 0;
        queued -= found;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        if (!found) return NULL;
        compute(100000, it->index);
    }
}

static void *produce(void *unused) {
    for (int i = 0; i < ITEMS; i++) {
        compute(200000, i);
        pthread_mutex_lock(&lock);
        while (queued == ROOM) pthread_cond_wait(&not_full, &lock);
        queued++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    ended = 1;
    pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t producer;
    pthread_create(&producer, NULL, produce, NULL);
    in_threads(argc > 1 ? number(argv[1]) : 1, consume);
    pthread_join(producer, NULL);
}
