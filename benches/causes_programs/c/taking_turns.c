// Threads that take turns: each waits on a condition until the one before it has done its step. Two
// threads never compute at the same time.
#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 3000 / it->threads; i++) {
        pthread_mutex_lock(&lock);
        while (turn != it->index) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        own = compute(100000, own);
        pthread_mutex_lock(&lock);
        turn = (turn + 1) % it->threads;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
