/* A mutex of each kind. HELD, APART: steps.

   recursive    its owner takes it a second time
   checked      it knows its owner
   adaptive     threads spin for it before they sleep
   robust       it outlives its owner
   inherited    its owner gets the priority of those that wait */
#define _GNU_SOURCE
#include "plant.h"

static pthread_mutex_t mutex;

static void prepare(void) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    switch (kind[2]) {
    case 'c': pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE); break;
    case 'e': pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK); break;
    case 'a': pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ADAPTIVE_NP); break;
    case 'b': pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST); break;
    default: pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    }
    pthread_mutex_init(&mutex, &how);
}

static __attribute__((noinline)) void inner(unsigned long *seed) {
    if (kind[2] == 'c')
        pthread_mutex_lock(&mutex);
    result += *seed = work(*seed, held);
    if (kind[2] == 'c')
        pthread_mutex_unlock(&mutex);
}

static __attribute__((noinline)) void outer(unsigned long *seed) {
    pthread_mutex_lock(&mutex);
    inner(seed);
    pthread_mutex_unlock(&mutex);
}

static void operation(long number, unsigned long *seed) {
    (void)number;
    outer(seed);
    *seed = work(*seed, apart);
}
