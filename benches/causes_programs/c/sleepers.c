// Threads that only wait for timers: 200 waits of 2 ms in all.
#include "work.h"
#include <time.h>

static void *body(void *argument) {
    part *it = argument;
    struct timespec wait = {0, 2000000};
    for (int i = 0; i < 200 / it->threads; i++) nanosleep(&wait, NULL);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
