/* One lock for a binary heap. HELD: times that the first is taken and another put in; APART: steps. */
#include "plant.h"

enum { SIZE = 1024 };
static unsigned long heap[SIZE + 1];
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
    for (long index = 1; index <= SIZE; index++)
        heap[index] = (unsigned long)index;
}

/* Puts a value in the place of the first. */
static void replace_first(unsigned long value) {
    long at = 1;
    for (long child = 2; child <= SIZE; child = 2 * at) {
        if (child < SIZE && heap[child + 1] < heap[child])
            child++;
        if (value <= heap[child])
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

static __attribute__((noinline)) void schedule(unsigned long *seed) {
    pthread_mutex_lock(&heap_lock);
    for (long taken = 0; taken < held; taken++)
        replace_first(heap[1] + drawn(seed) % SIZE);
    result += heap[1];
    pthread_mutex_unlock(&heap_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    schedule(seed);
    *seed = work(*seed, apart);
}
