// A mutex that is held for 2 % of each operation: too short to limit two CPUs.
#include "work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared = 1;

static void *body(void *argument) {
    part *it = argument;
    for (int i = 0; i < 8000 / it->threads; i++) {
        pthread_mutex_lock(&lock);
        shared = compute(1000, shared);
        pthread_mutex_unlock(&lock);
        compute(49000, i);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
