/* The lock is in a library that is loaded while the program runs: KIND is its name. HELD, APART:
   steps. */
#include "plant.h"
#include <dlfcn.h>

static unsigned long (*add)(unsigned long seed, long steps);

static void prepare(void) {
    void *library = dlopen(kind, RTLD_NOW);
    add = library ? (unsigned long (*)(unsigned long, long))dlsym(library, "counter_add") : NULL;
    if (!add) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    *seed = work(add(*seed, held), apart);
}
