/* Who has the lock asks the kernel. HELD: reads of 4 KiB of /dev/zero; APART: steps. */
#include "plant.h"
#include <fcntl.h>
#include <unistd.h>

static int file;
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) { file = open("/dev/zero", O_RDONLY); }

static __attribute__((noinline)) void read_some(void) {
    char block[4096];
    pthread_mutex_lock(&file_lock);
    for (long done = 0; done < held; done++)
        result += (unsigned long)read(file, block, sizeof block);
    pthread_mutex_unlock(&file_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    read_some();
    *seed = work(*seed, apart);
}
