/* A list in the order of use, under one lock. HELD: entries that are moved to its front; APART:
   steps. */
#include "plant.h"

enum { ENTRIES = 512 };
struct entry {
    struct entry *before, *after;
};
static struct cache {
    struct entry head, entries[ENTRIES];
    pthread_mutex_t lock;
} cache;

static void put_first(struct entry *entry) {
    entry->after = cache.head.after;
    entry->before = &cache.head;
    entry->after->before = entry;
    cache.head.after = entry;
}

static void prepare(void) {
    pthread_mutex_init(&cache.lock, NULL);
    cache.head.before = cache.head.after = &cache.head;
    for (long index = 0; index < ENTRIES; index++)
        put_first(&cache.entries[index]);
}

static __attribute__((noinline)) void touch(unsigned long *seed) {
    pthread_mutex_lock(&cache.lock);
    for (long moved = 0; moved < held; moved++) {
        struct entry *entry = &cache.entries[drawn(seed) % ENTRIES];
        entry->before->after = entry->after;
        entry->after->before = entry->before;
        put_first(entry);
    }
    pthread_mutex_unlock(&cache.lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    touch(seed);
    *seed = work(*seed, apart);
}
