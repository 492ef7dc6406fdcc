package concurve.mandelbrot;

/**
 * One worker's part of one computation.
 *
 * @param name {@code Thread-1}, {@code Thread-2}, …
 * @param priority its Java priority
 * @param beginNs {@link Clock} when it began
 * @param endNs {@link Clock} when it had nothing more to do
 */
record WorkerResult(
        String name, int priority, long pixels, long iterations, long beginNs, long endNs) {

    double seconds() {
        return (endNs - beginNs) / 1e9;
    }
}
