// Three equal tasks for whoever is free: with two threads, one of them has two.
#include "work.h"
#include <stdatomic.h>

enum { TASKS = 3 };
static atomic_int next;

static void *body(void *unused) {
    int task;
    while ((task = atomic_fetch_add(&next, 1)) < TASKS) compute(140000000, task);
    return unused;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
