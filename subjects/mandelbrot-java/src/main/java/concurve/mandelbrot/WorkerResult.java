package concurve.mandelbrot;

import java.util.List;

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

    /** When the last of them was done. A loop: who marks the end of a computation has no time to compile a stream. */
    static long lastEndNs(List<WorkerResult> results) {
        long endNs = results.get(0).endNs;
        for (WorkerResult result : results) {
            endNs = Math.max(endNs, result.endNs);
        }
        return endNs;
    }

    double seconds() {
        return (endNs - beginNs) / 1e9;
    }
}
