package concurve.mandelbrot;

/** CLOCK_MONOTONIC, the clock of {@code at_ns} on the report channel. */
final class Clock {
    private Clock() {}

    /** Nanoseconds: on Linux, {@code System.nanoTime} is CLOCK_MONOTONIC without an offset. */
    static long monotonicNs() {
        return System.nanoTime();
    }
}
