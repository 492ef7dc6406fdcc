package concurve.mandelbrot;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** One thread for each worker; the threads wait for their work at a start barrier. */
final class ThreadWorkers implements Workers {
    private final ComputeOptions options;
    private final Threads.Maker maker;
    private final StartBarrier barrier;
    private final List<Thread> threads = new ArrayList<>();

    /** Replaced for each computation while the workers wait; published by the barrier. */
    private Handout handout;

    private int[] counts;

    /** Made by the main thread: each worker that allocated would take a buffer of the heap, and hundreds
     * would have the collector run at the end of the computation. */
    private Totals[] totals;

    ThreadWorkers(ComputeOptions options) throws Failure {
        this.options = options;
        this.maker = Threads.maker(options);
        this.barrier = new StartBarrier(options.afterLoop() == ComputeOptions.AfterLoop.SPIN);
    }

    @Override
    public void start() throws Failure {
        Threads.check(options);
        if (options.create() == ComputeOptions.Create.START) {
            start(barrier.round());
            await();
        }
    }

    @Override
    public Computation compute(Handout handout, int[] counts, Edges edges) throws Failure {
        boolean create = options.create() == ComputeOptions.Create.RUN;
        if (create) {
            end();
        }
        this.handout = handout;
        this.counts = counts;
        totals = Stream.generate(Totals::new).limit(options.threads()).toArray(Totals[]::new);
        long beginNs = Clock.monotonicNs();
        edges.begin(beginNs);
        barrier.open();
        if (create) {
            start(barrier.round() - 1);
        } else {
            barrier.wake(threads);
        }
        await();
        List<WorkerResult> results = results();
        long endNs = WorkerResult.lastEndNs(results);
        edges.end(endNs);
        return Computation.of(beginNs, endNs, results, handout);
    }

    private void await() throws Failure {
        Throwable death = barrier.await(options.threads());
        if (death != null) {
            throw Failure.of("a worker died: " + death, death);
        }
    }

    /** Creates the workers, which count as having passed the barrier {@code passed} times. */
    private void start(int passed) throws Failure {
        for (int worker = 0; worker < options.threads(); worker++) {
            int number = worker;
            try {
                Thread thread = maker.make(Threads.name(worker), () -> run(number, passed));
                thread.start();
                threads.add(thread);
            } catch (OutOfMemoryError refused) {
                throw Limits.refused(options.threads(), worker, refused);
            }
        }
    }

    /** What a worker's thread runs. */
    private void run(int worker, int passed) {
        try {
            for (int round = passed; barrier.enter(round); round++) {
                work(worker, totals[worker]);
            }
        } catch (Throwable death) {
            barrier.workerDied(death);
        }
    }

    private void work(int worker, Totals totals) {
        Handout handout = this.handout;
        Cut cut = handout.cut;
        int[] counts = this.counts;
        long beginNs = Clock.monotonicNs();
        long pixels = 0;
        long iterations = 0;
        int pixelsDone = 0;
        for (int place = 0, unit; (unit = handout.claim(worker, place, pixelsDone)) >= 0; place++) {
            handout.note(unit, worker);
            iterations += cut.compute(unit, counts);
            pixelsDone = cut.pixels(unit);
            pixels += pixelsDone;
        }
        totals.pixels = pixels;
        totals.iterations = iterations;
        totals.beginNs = beginNs;
        totals.endNs = Clock.monotonicNs();
    }

    private List<WorkerResult> results() {
        List<WorkerResult> results = new ArrayList<>();
        for (int worker = 0; worker < totals.length; worker++) {
            results.add(totals[worker].of(Threads.name(worker), threads.get(worker).getPriority()));
        }
        return results;
    }

    /** Ends the workers of the last computation; new ones can then be created. */
    private void end() {
        close();
        barrier.reopen();
    }

    @Override
    public void close() {
        barrier.close();
        barrier.wake(threads);
        threads.forEach(Threads::join);
        threads.clear();
    }
}
