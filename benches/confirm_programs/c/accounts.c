/* Transfers lock two accounts, in their order; all pay to the first one. HELD, APART: steps. */
#include "plant.h"

enum { ACCOUNTS = 64 };
static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[ACCOUNTS];

static void prepare(void) {
    for (long index = 0; index < ACCOUNTS; index++)
        pthread_mutex_init(&accounts[index].lock, NULL);
}

static __attribute__((noinline)) void transfer(struct account *to, struct account *from,
                                               unsigned long *seed) {
    pthread_mutex_lock(&to->lock);
    pthread_mutex_lock(&from->lock);
    *seed = work(*seed, held);
    long amount = (long)(*seed % 100);
    to->balance += amount;
    from->balance -= amount;
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_unlock(&to->lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    transfer(&accounts[0], &accounts[1 + drawn(seed) % (ACCOUNTS - 1)], seed);
    *seed = work(*seed, apart);
}
