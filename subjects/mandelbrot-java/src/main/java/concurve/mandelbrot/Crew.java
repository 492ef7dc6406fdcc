package concurve.mandelbrot;

/** The threads that compute. The main thread hires them, lets them go and only waits. */
interface Crew extends AutoCloseable {

    /** What the main thread does when a computation begins. */
    interface Begin {
        /** The clock has started at {@code beginNs}; nobody computes yet. */
        void at(long beginNs) throws Failure;
    }

    /** The crew of a setting, not yet hired. */
    static Crew of(Setting setting) throws Failure {
        return switch (setting.kind()) {
            case PLATFORM, VIRTUAL -> new ThreadCrew(setting);
            case FORKJOIN, PARALLEL_STREAM -> new PoolCrew(setting);
        };
    }

    /** Creates the workers, if they are to be there before the first computation. */
    void hire() throws Failure;

    /** Computes the picture of {@code handout} into {@code counts}. */
    Computation compute(Handout handout, int[] counts, Begin begin) throws Failure;

    /** Sends the workers home and waits until they are gone. */
    @Override
    void close();
}
