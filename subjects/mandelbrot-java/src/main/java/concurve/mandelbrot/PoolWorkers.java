package concurve.mandelbrot;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/**
 * Threads of a ForkJoinPool. The library divides a loop over the units among them, as JOMP did with
 * the loop of document 002, §8.3.3.
 *
 * <p>The loop has one iteration for each unit. Without synchronisation an iteration computes the unit
 * of its own number, so the library decides the shares; otherwise it takes the next unit of the
 * hand-out.
 */
final class PoolWorkers implements Workers {
    /** Longer than any computation, so that the pool ends no thread. */
    private static final long KEEP_ALIVE_DAYS = 30;

    /** A ForkJoinPool can have 32767. */
    private static final int THREADS_MAX = 32_000;

    /** Interval at which the main thread checks whether a worker died. */
    private static final long LOOK_AFTER_MS = 200;

    /** How long to wait for the end of a pool. */
    private static final long END_SECONDS = 10;

    private final ComputeOptions options;
    private final StartBarrier barrier;
    private ForkJoinPool pool;
    private List<PoolThread> threads = List.of();
    private List<ForkJoinTask<?>> spinners = List.of();

    /** A pool that has lost a thread may never end; its threads are daemons. */
    private boolean broken;

    PoolWorkers(ComputeOptions options) throws Failure {
        if (options.threads() > THREADS_MAX) {
            throw Failure.of(
                    "--threads " + options.threads() + ": a ForkJoinPool takes at most "
                            + THREADS_MAX + "; use --kind platform or virtual for more");
        }
        this.options = options;
        this.barrier = new StartBarrier(options.afterLoop() == ComputeOptions.AfterLoop.SPIN);
    }

    /** A thread of the pool with its totals of the running computation. */
    private final class PoolThread extends ForkJoinWorkerThread {
        private final int worker;
        private Totals totals;

        PoolThread(ForkJoinPool pool, int worker) {
            super(pool);
            this.worker = worker;
            setName(Threads.name(worker));
            setPriority(options.priority());
        }

        /** A thread that cannot start another one ends with the error. */
        @Override
        protected void onTermination(Throwable death) {
            if (death != null) {
                barrier.workerDied(death);
            }
            super.onTermination(death);
        }
    }

    @Override
    public void start() throws Failure {
        Threads.check(options);
        if (options.create() == ComputeOptions.Create.START && options.threads() > 0) {
            createPool();
            gatherAll();
        }
    }

    private void createPool() {
        List<PoolThread> created = new ArrayList<>();
        ForkJoinPool.ForkJoinWorkerThreadFactory factory =
                owner -> {
                    synchronized (created) {
                        PoolThread thread = new PoolThread(owner, created.size());
                        created.add(thread);
                        return thread;
                    }
                };
        int size = options.threads();
        threads = created;
        pool =
                new ForkJoinPool(
                        size, factory, null, false, size, size, 0, null, KEEP_ALIVE_DAYS,
                        TimeUnit.DAYS);
    }

    /**
     * Submits a task for each thread. No task ends before all have begun, so the pool creates all its
     * threads.
     */
    private void gatherAll() throws Failure {
        List<ForkJoinTask<?>> waits = submitWaits();
        Throwable death = barrier.await(options.threads());
        if (death != null) {
            throw failure(death);
        }
        barrier.open();
        barrier.wake(snapshot());
        waits.forEach(ForkJoinTask::join);
    }

    private List<ForkJoinTask<?>> submitWaits() throws Failure {
        int passed = barrier.round();
        List<ForkJoinTask<?>> waits = new ArrayList<>();
        try {
            for (int task = 0; task < options.threads(); task++) {
                waits.add(pool.submit(() -> barrier.enter(passed)));
            }
        } catch (OutOfMemoryError refused) {
            throw failure(refused);
        }
        return waits;
    }

    private Failure failure(Throwable death) {
        broken = true;
        for (Throwable cause = death; cause != null; cause = cause.getCause()) {
            // The library wraps the error of a thread in an error of the same class without a message.
            if (cause instanceof OutOfMemoryError && cause.getMessage() != null) {
                long alive = snapshot().stream().filter(Thread::isAlive).count();
                return Limits.refused(options.threads(), alive, cause);
            }
        }
        return Failure.of("a worker died: " + death, death);
    }

    private List<Thread> snapshot() {
        synchronized (threads) {
            return List.copyOf(threads);
        }
    }

    @Override
    public Computation compute(Handout handout, int[] counts, Edges edges) throws Failure {
        stopSpinning();
        if (options.create() == ComputeOptions.Create.RUN) {
            close();
        }
        threads.forEach(thread -> thread.totals = null);
        long beginNs = Clock.monotonicNs();
        edges.begin(beginNs);
        if (options.create() == ComputeOptions.Create.RUN) {
            createPool();
        }
        runLoop(handout, counts);
        List<WorkerResult> results = results(handout, beginNs);
        long endNs = WorkerResult.lastEndNs(results);
        edges.end(endNs);
        Computation computation = Computation.of(beginNs, endNs, results, handout);
        startSpinning();
        return computation;
    }

    private void runLoop(Handout handout, int[] counts) throws Failure {
        int units = handout.cut.units();
        IntConsumer iteration = number -> iterate(number, handout, counts);
        try {
            if (options.kind() == ComputeOptions.Kind.FORKJOIN) {
                await(pool.submit(new Halves(0, units, iteration)));
            } else {
                // In this pool, and not in the common one, because that is where it is submitted.
                await(pool.submit(() -> IntStream.range(0, units).parallel().forEach(iteration)));
            }
        } catch (OutOfMemoryError refused) {
            throw failure(refused);
        }
    }

    /** Waits for the loop. If a thread died it may never end, so this checks for deaths as well. */
    private void await(ForkJoinTask<?> loop) throws Failure {
        while (true) {
            try {
                loop.get(LOOK_AFTER_MS, TimeUnit.MILLISECONDS);
                return;
            } catch (TimeoutException still) {
                if (barrier.death() != null) {
                    throw failure(barrier.death());
                }
            } catch (ExecutionException error) {
                throw failure(error.getCause());
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    /** The iterations from {@code from} to {@code to}, split in halves down to one. */
    private static final class Halves extends RecursiveAction {
        private static final long serialVersionUID = 1L;

        private final int from;
        private final int to;
        private final transient IntConsumer iteration;

        Halves(int from, int to, IntConsumer iteration) {
            this.from = from;
            this.to = to;
            this.iteration = iteration;
        }

        @Override
        protected void compute() {
            if (to - from == 1) {
                iteration.accept(from);
                return;
            }
            int middle = (from + to) >>> 1;
            invokeAll(new Halves(from, middle, iteration), new Halves(middle, to, iteration));
        }
    }

    private void iterate(int number, Handout handout, int[] counts) {
        PoolThread thread = (PoolThread) Thread.currentThread();
        Totals totals = thread.totals;
        if (totals == null) {
            totals = new Totals();
            totals.beginNs = Clock.monotonicNs();
            thread.totals = totals;
        }
        int unit = handout.claim(number, 0, totals.pixelsDone);
        handout.note(unit, thread.worker);
        totals.iterations += handout.cut.compute(unit, counts);
        totals.pixelsDone = handout.cut.pixels(unit);
        totals.pixels += totals.pixelsDone;
        totals.endNs = Clock.monotonicNs();
    }

    /** The totals of all threads. The handout has not yet counted the last unit of each. */
    private List<WorkerResult> results(Handout handout, long beginNs) {
        List<WorkerResult> results = new ArrayList<>();
        synchronized (threads) {
            for (PoolThread thread : threads) {
                Totals totals = thread.totals;
                if (totals == null) {
                    totals = new Totals();
                    totals.beginNs = beginNs;
                    totals.endNs = beginNs;
                }
                handout.claim(0, 0, totals.pixelsDone);
                results.add(totals.of(thread.getName(), thread.getPriority()));
            }
        }
        return results;
    }

    /** The library owns its threads while the loop runs; they busy-wait afterwards. */
    private void startSpinning() throws Failure {
        if (options.afterLoop() == ComputeOptions.AfterLoop.SPIN) {
            spinners = submitWaits();
        }
    }

    private void stopSpinning() {
        barrier.open();
        spinners.forEach(ForkJoinTask::join);
        spinners = List.of();
    }

    @Override
    public void close() {
        if (pool == null) {
            return;
        }
        barrier.open();
        barrier.wake(snapshot());
        pool.shutdownNow();
        try {
            pool.awaitTermination(broken ? 0 : END_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        pool = null;
    }
}
