/* One lock for a chained hash table. HELD: entries that a look-up walks; APART: steps. */
#include "plant.h"

enum { ENTRIES = 4096 };
struct entry {
    struct entry *next;
    unsigned long key, used;
};
static struct entry entries[ENTRIES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
    for (long index = 0; index < ENTRIES; index++) {
        entries[index].key = (unsigned long)index;
        entries[index].next = &entries[(index * 1103 + 331) % ENTRIES];
    }
}

static __attribute__((noinline)) unsigned long look_up(unsigned long key) {
    pthread_mutex_lock(&table_lock);
    struct entry *at = &entries[key % ENTRIES];
    for (long walked = 0; walked < held; walked++)
        at = at->next;
    result += ++at->used;
    pthread_mutex_unlock(&table_lock);
    return at->key;
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    *seed = work(*seed ^ look_up(drawn(seed)), apart) | 1;
}
