/* The lock is in a library, which is linked. HELD, APART: steps. */
#include "plant.h"

unsigned long counter_add(unsigned long seed, long steps);

static void prepare(void) {}

static void operation(long number, unsigned long *seed) {
    (void)number;
    *seed = work(counter_add(*seed, held), apart);
}
