// Threads that scan a part each of a table of 192 MiB, which they have filled themselves, twenty times.
#include "work.h"

enum { WORDS = 192 << 17, SCANS = 20 };

static void *body(void *argument) {
    part *it = argument;
    long words = WORDS / it->threads;
    uint64_t *table = malloc(words * sizeof *table);
    if (table == NULL) exit(1);
    for (long i = 0; i < words; i++) table[i] = i;
    uint64_t sum = 0;
    for (int scan = 0; scan < SCANS; scan++) {
        for (long i = 0; i < words; i++) sum += table[i] ^ (uint64_t)scan;
        __asm__ volatile("" : "+r"(sum) : : "memory");
    }
    free(table);
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
}
