// A mutex that is taken for a few instructions, and for nearly all of them.
#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    for (long i = 0; i < 8000000 / it->threads; i++) {
        pthread_mutex_lock(&lock);
        shared = compute(10, shared);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
