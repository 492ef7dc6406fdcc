package concurve.mandelbrot;

/**
 * What is computed: a region, its pixels and the iteration limit.
 *
 * @param xMin left edge, real part
 * @param yMax upper edge, imaginary part
 * @param pitchX distance of neighbouring pixels
 * @param pitchY distance of neighbouring lines
 * @param width pixels a line
 * @param height lines
 * @param iterations greatest number of iterations of a pixel, unsigned
 */
record View(
        double xMin, double yMax, double pitchX, double pitchY, int width, int height, int iterations) {

    /** The region of {@code location} in {@code width} by {@code height} pixels. */
    static View of(Location location, int width, int height, int iterations) {
        return new View(
                location.xMin(),
                location.yMax(),
                (location.xMax() - location.xMin()) / width,
                (location.yMax() - location.yMin()) / height,
                width,
                height,
                iterations);
    }

    long pixels() {
        return (long) width * height;
    }

    /** Real part of the centre of the pixels in column {@code x}. */
    double re(int x) {
        return Math.fma(x + 0.5, pitchX, xMin);
    }

    /** Imaginary part of the centre of the pixels in line {@code y}, counted downwards. */
    double im(int y) {
        return Math.fma(y + 0.5, -pitchY, yMax);
    }
}
