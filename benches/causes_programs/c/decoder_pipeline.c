// A pipeline of three stages: one thread decodes frames, the workers filter them, one thread adds
// up what comes out. Decoding takes 24 cycles a pixel (six dependent multiplications), filtering
// some 10 to 14, adding up 1. So the decoder is always busy, one worker suffices it, and a second
// one (its total of 40 cycles needs but 1.6 CPUs) gains nothing: the first stage limits.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 256, HEIGHT = 256, FRAMES = 900, BUFFERS = 16, MOST = 64 };

typedef struct {
    int items[BUFFERS + MOST];
    int head, count;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
} queue;

static uint8_t decoded[BUFFERS][HEIGHT][WIDTH], filtered[BUFFERS][HEIGHT][WIDTH];
static queue unused, to_filter, to_add;
static int workers;

static void put(queue *it, int item) {
    pthread_mutex_lock(&it->mutex);
    it->items[(it->head + it->count++) % (BUFFERS + MOST)] = item;
    pthread_cond_signal(&it->filled);
    pthread_mutex_unlock(&it->mutex);
}

static int take(queue *it) {
    pthread_mutex_lock(&it->mutex);
    while (it->count == 0) pthread_cond_wait(&it->filled, &it->mutex);
    int item = it->items[it->head];
    it->head = (it->head + 1) % (BUFFERS + MOST);
    it->count--;
    pthread_mutex_unlock(&it->mutex);
    return item;
}

static void *decode(void *unneeded) {
    (void)unneeded;
    uint64_t state = 88172645463325252u;
    for (int frame = 0; frame < FRAMES; frame++) {
        int at = take(&unused);
        uint8_t *pixel = &decoded[at][0][0];
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            // The context of an entropy coder: every symbol depends on the one before it.
            for (int bit = 0; bit < 6; bit++) state = state * 6364136223846793005u + 1442695040888963407u;
            pixel[i] = (uint8_t)(state >> 56);
        }
        put(&to_filter, at);
    }
    for (int worker = 0; worker < workers; worker++) put(&to_filter, -1);
    return NULL;
}

static void *filter(void *unneeded) {
    (void)unneeded;
    for (;;) {
        int at = take(&to_filter);
        if (at < 0) return NULL;
        for (int y = 1; y < HEIGHT - 1; y++) {
            const uint8_t *above = decoded[at][y - 1], *here = decoded[at][y], *below = decoded[at][y + 1];
            for (int x = 1; x < WIDTH - 1; x++) {
                int sum = above[x - 1] + above[x] + above[x + 1] + here[x - 1] + here[x] + here[x + 1]
                    + below[x - 1] + below[x] + below[x + 1];
                filtered[at][y][x] = (uint8_t)(sum / 9);
            }
        }
        put(&to_add, at);
    }
}

static void *add_up(void *result) {
    uint64_t sum = 0;
    for (int frame = 0; frame < FRAMES; frame++) {
        int at = take(&to_add);
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) sum += filtered[at][y][x];
        }
        put(&unused, at);
    }
    *(uint64_t *)result = sum;
    return NULL;
}

static void prepare(queue *it) {
    pthread_mutex_init(&it->mutex, NULL);
    pthread_cond_init(&it->filled, NULL);
}

int main(int argc, char **argv) {
    workers = argc > 1 ? atoi(argv[1]) : 1;
    if (workers < 1 || workers > MOST) return 2;
    prepare(&unused);
    prepare(&to_filter);
    prepare(&to_add);
    for (int at = 0; at < BUFFERS; at++) put(&unused, at);
    pthread_t decoder, adder, filters[MOST];
    uint64_t sum = 0;
    pthread_create(&adder, NULL, add_up, &sum);
    for (int i = 0; i < workers; i++) pthread_create(&filters[i], NULL, filter, NULL);
    pthread_create(&decoder, NULL, decode, NULL);
    pthread_join(decoder, NULL);
    for (int i = 0; i < workers; i++) pthread_join(filters[i], NULL);
    pthread_join(adder, NULL);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
