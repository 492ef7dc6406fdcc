// Rows of the Mandelbrot set, which cost very different times. Each thread takes the next four rows
// from one atomic counter when it is done with its last: nothing limits it.
#include "work.h"
#include <stdatomic.h>

enum { WIDTH = 1200, HEIGHT = 800, ROWS = 4, LIMIT = 1500 };
static unsigned short picture[HEIGHT][WIDTH];
static atomic_int next;

static unsigned short escape(double x, double y) {
    double re = 0, im = 0;
    int steps = 0;
    for (; steps < LIMIT && re * re + im * im < 4; steps++) {
        double next_re = re * re - im * im + x;
        im = 2 * re * im + y;
        re = next_re;
    }
    return steps;
}

static void *body(void *unused) {
    int first;
    while ((first = atomic_fetch_add(&next, ROWS)) < HEIGHT) {
        for (int row = first; row < first + ROWS; row++) {
            for (int column = 0; column < WIDTH; column++) {
                picture[row][column] = escape(column * 3.0 / WIDTH - 2.2, row * 2.4 / HEIGHT - 1.2);
            }
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    in_threads(argc > 1 ? number(argv[1]) : 1, body);
    return picture[HEIGHT / 2][WIDTH / 2] == 0;
}
