/* The kernel's work in plain C, one thread, pixel by pixel: the bar that the Rust kernel must
 * reach. Several formulations, because compilers differ in which they like.
 *
 *     cc -O3 -march=native -o loops loops.c -lm
 *     ./loops NAME X_MIN X_MAX Y_MIN Y_MAX WIDTH HEIGHT ITERATIONS
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As in textbooks; the squares are kept. Rounds otherwise than the recurrence of the kernel. */
static inline uint32_t squares(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0;
    for (uint32_t n = 0; n < limit; n++) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4.0)
            return n;
        y = 2 * x * y + ci;
        x = xx - yy + cr;
    }
    return limit;
}

/* (x + y)(x - y) for the difference of squares. Rounds otherwise, too. */
static inline uint32_t factors(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0;
    for (uint32_t n = 0; n < limit; n++) {
        if (x * x + y * y > 4.0)
            return n;
        double sum = x + y, difference = x - y;
        y = (x + x) * y + ci;
        x = sum * difference + cr;
    }
    return limit;
}

/* The recurrence of the kernel, word for word. */
static inline uint32_t fused(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0;
    for (uint32_t n = 0; n < limit; n++) {
        if (fma(x, x, y * y) > 4.0)
            return n;
        double rest = fma(-y, y, cr);
        y = fma(x + x, y, ci);
        x = fma(x, x, rest);
    }
    return limit;
}

/* The same values with the doubles carried along, as the kernel has them. */
static inline uint32_t carried(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0, x2 = 0, y2 = 0;
    const double cr2 = cr + cr, ci2 = ci + ci;
    for (uint32_t n = 0; n < limit; n++) {
        if (fma(x, x, y * y) > 4.0)
            return n;
        double rest = fma(-y, y, cr), rest2 = fma(-y2, y, cr2);
        y = fma(x2, y, ci);
        y2 = fma(x2, y2, ci2);
        x2 = fma(x2, x, rest2);
        x = fma(x, x, rest);
    }
    return limit;
}

/* The same, unrolled by the compiler, which spares it copies of registers. */
static inline uint32_t carried_unrolled(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0, x2 = 0, y2 = 0;
    const double cr2 = cr + cr, ci2 = ci + ci;
#pragma GCC unroll 4
    for (uint32_t n = 0; n < limit; n++) {
        if (fma(x, x, y * y) > 4.0)
            return n;
        double rest = fma(-y, y, cr), rest2 = fma(-y2, y, cr2);
        y = fma(x2, y, ci);
        y2 = fma(x2, y2, ci2);
        x2 = fma(x2, x, rest2);
        x = fma(x, x, rest);
    }
    return limit;
}


/* The same values, two iterations a turn between two sets of variables: no copies at all. */
static inline uint32_t carried_by_two(double cr, double ci, uint32_t limit)
{
    double x = 0, y = 0, x2 = 0, y2 = 0;
    const double cr2 = cr + cr, ci2 = ci + ci;
    for (uint32_t n = 0; n < limit; n += 2) {
        if (fma(x, x, y * y) > 4.0)
            return n;
        double v = fma(x2, y, ci), v2 = fma(x2, y2, ci2);
        double u2 = fma(x2, x, fma(-y2, y, cr2)), u = fma(x, x, fma(-y, y, cr));
        if (fma(u, u, v * v) > 4.0)
            return n + 1 < limit ? n + 1 : limit;
        y = fma(u2, v, ci), y2 = fma(u2, v2, ci2);
        x2 = fma(u2, u, fma(-v2, v, cr2)), x = fma(u, u, fma(-v, v, cr));
    }
    return limit;
}

struct view {
    double x_min, y_max, pitch_x, pitch_y;
    uint32_t width, height, limit;
};

/* A loop over the picture for each formulation, so that it can be inlined. */
#define PICTURE(name)                                                                   \
    static uint64_t picture_##name(struct view v, uint32_t *counts)                     \
    {                                                                                   \
        uint64_t sum = 0;                                                               \
        for (uint32_t y = 0; y < v.height; y++)                                         \
            for (uint32_t x = 0; x < v.width; x++) {                                    \
                double cr = fma(x + 0.5, v.pitch_x, v.x_min);                           \
                double ci = fma(y + 0.5, -v.pitch_y, v.y_max);                          \
                uint32_t n = name(cr, ci, v.limit);                                     \
                counts[(size_t)y * v.width + x] = n;                                    \
                sum += n;                                                               \
            }                                                                           \
        return sum;                                                                     \
    }

PICTURE(squares)
PICTURE(factors)
PICTURE(fused)
PICTURE(carried)
PICTURE(carried_unrolled)
PICTURE(carried_by_two)

static const struct {
    const char *name;
    uint64_t (*compute)(struct view, uint32_t *);
} formulations[] = {
    {"squares", picture_squares},
    {"factors", picture_factors},
    {"fused", picture_fused},
    {"carried", picture_carried},
    {"carried_unrolled", picture_carried_unrolled},
    {"carried_by_two", picture_carried_by_two},
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 9) {
        fprintf(stderr, "usage: %s NAME X_MIN X_MAX Y_MIN Y_MAX WIDTH HEIGHT ITERATIONS\n", *argv);
        return 2;
    }
    struct view v = {.width = strtoul(argv[6], NULL, 10),
                     .height = strtoul(argv[7], NULL, 10),
                     .limit = strtoul(argv[8], NULL, 10)};
    v.x_min = strtod(argv[2], NULL);
    v.y_max = strtod(argv[5], NULL);
    v.pitch_x = (strtod(argv[3], NULL) - v.x_min) / v.width;
    v.pitch_y = (v.y_max - strtod(argv[4], NULL)) / v.height;
    const size_t bytes = (size_t)v.width * v.height * sizeof(uint32_t);
    uint32_t *counts = malloc(bytes);
    if (!counts)
        return 1;
    memset(counts, 0, bytes);
    for (size_t i = 0; i < sizeof formulations / sizeof *formulations; i++)
        if (strcmp(argv[1], formulations[i].name) == 0) {
            double begin = seconds();
            uint64_t sum = formulations[i].compute(v, counts);
            double end = seconds();
            printf("pixel_sum %llu\ncompute_seconds %.6f\n", (unsigned long long)sum, end - begin);
            return 0;
        }
    fprintf(stderr, "no formulation `%s`\n", argv[1]);
    return 2;
}
