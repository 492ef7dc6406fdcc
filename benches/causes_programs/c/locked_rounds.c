// Rounds with a barrier, whose parts are shared out evenly. Of each part so many percent are done
// under one mutex. By turns, one part in each round takes `uneven` times as long, outside of it.
#include "work.h"

static pthread_barrier_t round_end;
static pthread_mutex_t sum_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;
static long rounds, parts, held_percent, uneven;
enum { WORK = 600000000 };

static void *body(void *argument) {
    part *it = argument;
    long each = WORK / rounds / (parts - 1 + uneven);
    uint64_t own = it->index;
    for (long round = 0; round < rounds; round++) {
        for (long i = it->index; i < parts; i += it->threads) {
            long outside = each * (100 - held_percent) / 100;
            own = compute(i == round % parts ? outside + each * (uneven - 1) : outside, own);
            pthread_mutex_lock(&sum_lock);
            sum += compute(each * held_percent / 100, own);
            pthread_mutex_unlock(&sum_lock);
        }
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int threads = number(argv[1]);
    rounds = number(argv[2]), parts = number(argv[3]);
    held_percent = number(argv[4]), uneven = number(argv[5]);
    pthread_barrier_init(&round_end, NULL, threads);
    in_threads(threads, body);
    printf("%lu\n", (unsigned long)sum);
}
