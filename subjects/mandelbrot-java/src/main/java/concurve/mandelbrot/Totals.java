package concurve.mandelbrot;

/** What one worker adds up in one computation. {@code endNs} is when no work was left for it. */
final class Totals {
    /** Pixels of its last unit, of which the hand-out does not know yet. */
    int pixelsDone;

    long pixels;
    long iterations;
    long beginNs;
    long endNs;

    WorkerResult of(String worker, int priority) {
        return new WorkerResult(worker, priority, pixels, iterations, beginNs, endNs);
    }
}
