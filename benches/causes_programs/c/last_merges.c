// Threads that compute a share each. The one that is ready last puts the results together, and the
// others have ended.
#include "work.h"
#include <stdatomic.h>

static atomic_int ready;
static uint64_t sums[64];

static void *share(void *given) {
    part *own = given;
    sums[own->index] = compute(240000000 / own->threads, own->index + 1);
    if (atomic_fetch_add(&ready, 1) + 1 == own->threads) sums[0] = compute(120000000, sums[0]);
    return NULL;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, share);
    return sums[0] == 0;
}
