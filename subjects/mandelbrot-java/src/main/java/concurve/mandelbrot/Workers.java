package concurve.mandelbrot;

/** The threads that compute. The main thread creates them, starts each computation, and waits. */
interface Workers extends AutoCloseable {

    /** What the main thread does at the edges of a computation, before anything else. */
    interface Edges {
        /** The clock has started at {@code beginNs}; no worker computes yet. */
        void begin(long beginNs) throws Failure;

        /** The last worker was done at {@code endNs}; nothing has been made of the results yet. */
        void end(long endNs) throws Failure;
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
    Computation compute(Handout handout, int[] counts, Edges edges) throws Failure;

    /** Ends the workers and waits until they have ended. */
    @Override
    void close();
}
