/* A binary tree under one lock. HELD: look-ups; APART:
   steps. */
#include "plant.h"

enum { LEVELS = 15 };
struct node {
    unsigned long key;
    struct node *lower, *higher;
};
static struct node *root;
static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER;

static struct node *grown(unsigned long low, unsigned long high, int level) {
    if (level == 0)
        return NULL;
    struct node *node = malloc(sizeof *node);
    node->key = low + (high - low) / 2;
    node->lower = grown(low, node->key, level - 1);
    node->higher = grown(node->key, high, level - 1);
    return node;
}

static void prepare(void) { root = grown(0, ~0UL, LEVELS); }

static __attribute__((noinline)) void find(unsigned long *seed) {
    pthread_mutex_lock(&tree_lock);
    for (long wanted = 0; wanted < held; wanted++) {
        unsigned long key = drawn(seed);
        for (struct node *node = root; node; node = key < node->key ? node->lower : node->higher)
            result += node->key & 1;
    }
    pthread_mutex_unlock(&tree_lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    find(seed);
    *seed = work(*seed, apart);
}
