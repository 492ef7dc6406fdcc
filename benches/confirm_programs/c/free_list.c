/* An allocator with one lock: it looks for a free block from the start. HELD: blocks that are in use
   before the first free one; APART: steps with the block. */
#include "plant.h"

enum { BLOCKS = 16384 };
static struct block {
    long is_used, bytes;
} blocks[BLOCKS];
static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
    for (long index = 0; index < held; index++)
        blocks[index].is_used = 1;
}

static __attribute__((noinline)) struct block *obtain(void) {
    pthread_mutex_lock(&arena_lock);
    long index = 0;
    while (blocks[index].is_used) {
        index++;
        __asm__ volatile("" ::: "memory");
    }
    blocks[index].is_used = 1;
    pthread_mutex_unlock(&arena_lock);
    return &blocks[index];
}

static __attribute__((noinline)) void give_back(struct block *block) {
    pthread_mutex_lock(&arena_lock);
    block->is_used = 0;
    pthread_mutex_unlock(&arena_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    struct block *block = obtain();
    *seed = work(*seed, apart);
    block->bytes = (long)*seed;
    give_back(block);
}
