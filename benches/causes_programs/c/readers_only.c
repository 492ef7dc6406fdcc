// A reader-writer lock that only readers take, for a short look each: nobody waits for anybody, but
// the word that counts the readers moves between the CPUs.
#include "work.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile uint64_t shared = 7;

static void *body(void *argument) {
    part *it = argument;
    uint64_t sum = 0;
    for (long i = 0; i < 12000000 / it->threads; i++) {
        pthread_rwlock_rdlock(&lock);
        sum += shared;
        pthread_rwlock_unlock(&lock);
    }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
