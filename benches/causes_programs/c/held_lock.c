// A mutex that is held for 70 % of each operation, of unequal lengths.
#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 4000 / it->threads; i++) {
        own = compute(10000 + own % 40000, own);
        pthread_mutex_lock(&lock);
        shared = compute(40000 + shared % 60000, shared);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
