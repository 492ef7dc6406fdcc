// Each of 20,000 short tasks gets a thread of its own, at most N of them at once.
#include "work.h"
#include <semaphore.h>

static sem_t free_places;

static void *task(void *argument) {
    compute(2000, (uintptr_t)argument);
    sem_post(&free_places);
    return NULL;
}

int main(int argc, char **argv) {
    sem_init(&free_places, 0, argc > 1 ? number(argv[1]) : 1);
    int all = 0;
    sem_getvalue(&free_places, &all);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (uintptr_t i = 0; i < 20000; i++) {
        pthread_t id;
        sem_wait(&free_places);
        if (pthread_create(&id, &detached, task, (void *)i) != 0) return 1;
    }
    for (int i = 0; i < all; i++) sem_wait(&free_places);
}
