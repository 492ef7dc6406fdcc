package concurve.mandelbrot;

/**
 * How an image is computed.
 *
 * @param threads workers
 * @param priority Java priority of each
 * @param tileSize pixels a side, with {@link Cut.Grain#TILE}
 */
record ComputeOptions(
        int threads,
        Kind kind,
        int priority,
        Create create,
        AfterLoop afterLoop,
        Handout.Sync sync,
        Cut.Grain grain,
        int tileSize) {

    /** What the workers are. */
    enum Kind {
        /** One kernel thread each. */
        PLATFORM,
        /** Scheduled by the JVM on a few carrier threads; needs Java 21. */
        VIRTUAL,
        /** Threads of a ForkJoinPool; the loop over the units is split in halves. */
        FORKJOIN,
        /** Threads of a ForkJoinPool; the loop over the units is a parallel stream. */
        PARALLEL_STREAM
    }

    /** When the workers are created. */
    enum Create {
        /** Once, before the clock starts. */
        START,
        /** Anew for each computation, while the clock runs. */
        RUN
    }

    /** What a worker does when no work is left. */
    enum AfterLoop {
        /** It sleeps until there is work again. */
        PARK,
        /** It busy-waits until there is work again, as the threads of JOMP did. */
        SPIN
    }
}
