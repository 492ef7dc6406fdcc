package concurve.mandelbrot;

/**
 * One worker's part of one computation.
 *
 * @param name {@code Thread-1}, {@code Thread-2}, …
 * @param priority its Java priority
 * @param beginNs {@link Clock} when it began
 * @param endNs {@link Clock} when no work was left for it
 */
record WorkerResult(
        String name, int priority, long pixels, long iterations, long beginNs, long endNs) {

    double seconds() {
        return (endNs - beginNs) / 1e9;
    }
}
