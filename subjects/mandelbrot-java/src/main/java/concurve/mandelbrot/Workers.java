package concurve.mandelbrot;

/** The threads that compute. The main thread creates them, starts each computation, and waits. */
interface Workers extends AutoCloseable {

    /** What the main thread does when a computation begins. */
    interface Begin {
        /** The clock has started at {@code beginNs}; no worker computes yet. */
        void at(long beginNs) throws Failure;
    }

    /** The workers that the options ask for, not yet created. */
    static Workers of(ComputeOptions options) throws Failure {
        return switch (options.kind()) {
            case PLATFORM, VIRTUAL -> new ThreadWorkers(options);
            case FORKJOIN, PARALLEL_STREAM -> new PoolWorkers(options);
        };
    }

    /** Creates the workers, unless the options ask for new ones in each computation. */
    void start() throws Failure;

    /** Computes the image of {@code handout} into {@code counts}. */
    Computation compute(Handout handout, int[] counts, Begin begin) throws Failure;

    /** Ends the workers and waits until they have ended. */
    @Override
    void close();
}
