// OpenMP: the rows of each picture are smoothed in parallel (a recursive filter, there and back,
// some 20 to 24 cycles a pixel, all rows alike), then the main thread alone spreads the errors of
// its dithering from pixel to pixel, which cannot be divided (15 to 25 cycles a pixel). So 40 to
// 50 % are serial; the team meanwhile waits, spinning, in the library. Nothing else is lost.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 480, PICTURES = 140 };

static float picture[HEIGHT][WIDTH], smooth[HEIGHT][WIDTH];
static int errors[2][WIDTH + 2];

static void smooth_row(const float *from, float *to) {
    float last = from[0], before = from[0];
    for (int x = 0; x < WIDTH; x++) {
        float next = 0.3f * from[x] + 0.5f * last + 0.2f * before;
        before = last;
        last = next;
        to[x] = next;
    }
    before = last;
    for (int x = WIDTH - 1; x >= 0; x--) {
        float next = 0.3f * to[x] + 0.5f * last + 0.2f * before;
        before = last;
        last = next;
        to[x] = next;
    }
}

static uint64_t dither(void) {
    uint64_t black = 0;
    for (int x = 0; x < WIDTH + 2; x++) errors[0][x] = errors[1][x] = 0;
    for (int y = 0; y < HEIGHT; y++) {
        int *here = errors[y & 1], *below = errors[(y + 1) & 1];
        for (int x = 0; x < WIDTH + 2; x++) below[x] = 0;
        for (int x = 1; x <= WIDTH; x++) {
            int value = (int)smooth[y][x - 1] + here[x] / 16;
            int error = value;
            if (value >= 128) error = value - 255;
            else black++;
            here[x + 1] += error * 7;
            below[x - 1] += error * 3;
            below[x] += error * 5;
            below[x + 1] += error;
        }
    }
    return black;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    uint64_t black = 0, random = 1;
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            picture[y][x] = (float)(random >> 56);
        }
    }
    for (int number = 0; number < PICTURES; number++) {
        picture[number % HEIGHT][number] += 1;
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int y = 0; y < HEIGHT; y++) smooth_row(picture[y], smooth[y]);
        black += dither();
    }
    printf("%llu\n", (unsigned long long)black);
    return 0;
}
