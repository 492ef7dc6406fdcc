// Each operation computes for a millisecond and then waits at a semaphore that nobody posts, for half a
// millisecond: as long at each level, for nobody of the program.
#include "work.h"
#include <semaphore.h>
#include <time.h>

enum { OPERATIONS = 300 };

static void *body(void *argument) {
    part *it = argument;
    sem_t never;
    sem_init(&never, 0, 0);
    for (int i = 0; i < OPERATIONS / it->threads; i++) {
        compute(1000000, it->index + 1);
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 500000;
        if (end.tv_nsec >= 1000000000) {
            end.tv_nsec -= 1000000000;
            end.tv_sec++;
        }
        sem_timedwait(&never, &end);
    }
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
