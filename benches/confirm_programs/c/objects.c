/* Each object has a lock of its own in allocated memory. HELD, APART: steps.

   hot      seven operations in eight are on the same object
   even     all objects are used alike */
#include "plant.h"

enum { OBJECTS = 256 };
struct object {
    unsigned long value;
    pthread_mutex_t lock;
};
static struct object *objects[OBJECTS];

static void prepare(void) {
    for (long index = 0; index < OBJECTS; index++) {
        objects[index] = calloc(1, sizeof *objects[index] + 64);
        pthread_mutex_init(&objects[index]->lock, NULL);
    }
}

static __attribute__((noinline)) void change(struct object *object, unsigned long *seed) {
    pthread_mutex_lock(&object->lock);
    object->value += *seed = work(*seed, held);
    pthread_mutex_unlock(&object->lock);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    unsigned long index = drawn(seed) % OBJECTS;
    change(objects[kind[0] == 'h' && index % 8 ? 0 : index], seed);
    *seed = work(*seed, apart);
}
