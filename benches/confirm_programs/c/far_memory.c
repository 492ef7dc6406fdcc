/* What the lock guards is larger than the caches. HELD: places that are read and written at random;
   APART: steps. */
#include "plant.h"

enum { PLACES = 1 << 22 };
static unsigned long *table;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
    table = malloc(PLACES * sizeof *table);
    memset(table, 1, PLACES * sizeof *table);
}

static __attribute__((noinline)) void update(unsigned long *seed) {
    pthread_mutex_lock(&table_lock);
    for (long place = 0; place < held; place++)
        *seed ^= ++table[drawn(seed) % PLACES];
    pthread_mutex_unlock(&table_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    update(seed);
    *seed = work(*seed | 1, apart);
}
