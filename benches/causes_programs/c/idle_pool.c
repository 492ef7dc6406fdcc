// A pool of N threads, of which two get all the work; the others wait for work that never comes.
#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int busy = 2, ended;

static void *body(void *argument) {
    part *it = argument;
    if (it->index < 2) {
        compute(400000000 / (it->threads < 2 ? 1 : 2), it->index);
        pthread_mutex_lock(&lock);
        ended = --busy == 0 || it->threads < 2;
        pthread_cond_broadcast(&work);
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    while (!ended) pthread_cond_wait(&work, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
