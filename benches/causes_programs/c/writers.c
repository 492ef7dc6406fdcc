// A reader-writer lock that every operation takes to write, for 70 % of its time.
#include "work.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    uint64_t own = it->index + 1;
    for (int i = 0; i < 4000 / it->threads; i++) {
        own = compute(10000 + own % 40000, own);
        pthread_rwlock_wrlock(&lock);
        shared = compute(40000 + shared % 60000, shared);
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
