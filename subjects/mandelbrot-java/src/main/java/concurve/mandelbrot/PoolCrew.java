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
 * Threads of a ForkJoinPool: a loop over the units that the library shares out, as JOMP did with the
 * loop of document 002, §8.3.3.
 *
 * <p>The loop has a turn for each unit. Without synchronisation a turn computes the unit of its own
 * number, and the shares are the library's; otherwise a turn takes the next unit of the hand-out.
 */
final class PoolCrew implements Crew {
    /** Longer than any computation: threads that once were there stay. */
    private static final long KEEP_ALIVE_DAYS = 30;

    /** What a ForkJoinPool can have is 32767. */
    private static final int THREADS_MAX = 32_000;

    /** How often the main thread looks whether a worker died. */
    private static final long LOOK_AFTER_MS = 200;

    /** How long the end of a pool is waited for. */
    private static final long END_SECONDS = 10;

    private final Setting setting;
    private final Gate gate;
    private ForkJoinPool pool;
    private List<PoolThread> threads = List.of();
    private List<ForkJoinTask<?>> spinners = List.of();

    /** A pool that has lost a thread may never end; its threads are daemons. */
    private boolean broken;

    PoolCrew(Setting setting) throws Failure {
        if (setting.threads() > THREADS_MAX) {
            throw Failure.of(
                    "--threads " + setting.threads() + ": a ForkJoinPool takes at most "
                            + THREADS_MAX + "; use --kind platform or virtual for more");
        }
        this.setting = setting;
        this.gate = new Gate(setting.afterLoop() == Setting.AfterLoop.SPIN);
    }

    /** A thread of the pool with its books of the computation that goes on. */
    private final class PoolThread extends ForkJoinWorkerThread {
        private Books books;

        PoolThread(ForkJoinPool pool, int worker) {
            super(pool);
            setName(Threads.name(worker));
            setPriority(setting.priority());
        }

        /** A thread that could not start another one dies of it. */
        @Override
        protected void onTermination(Throwable death) {
            if (death != null) {
                gate.breakDown(death);
            }
            super.onTermination(death);
        }
    }

    /** What a thread has done in a computation. */
    private static final class Books {
        int pixelsDone;
        long pixels;
        long iterations;
        long beginNs;
        long endNs;
    }

    @Override
    public void hire() throws Failure {
        Threads.check(setting);
        if (setting.create() == Setting.Create.START && setting.threads() > 0) {
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
        int size = setting.threads();
        threads = created;
        pool =
                new ForkJoinPool(
                        size, factory, null, false, size, size, 0, null, KEEP_ALIVE_DAYS,
                        TimeUnit.DAYS);
    }

    /** A task for each thread, none of which ends before all have begun: so all threads are there. */
    private void gatherAll() throws Failure {
        List<ForkJoinTask<?>> waits = submitWaits();
        Throwable death = gate.await(setting.threads());
        if (death != null) {
            throw failure(death);
        }
        gate.open();
        gate.wake(snapshot());
        waits.forEach(ForkJoinTask::join);
    }

    private List<ForkJoinTask<?>> submitWaits() throws Failure {
        int passed = gate.round();
        List<ForkJoinTask<?>> waits = new ArrayList<>();
        try {
            for (int task = 0; task < setting.threads(); task++) {
                waits.add(pool.submit(() -> gate.enter(passed)));
            }
        } catch (OutOfMemoryError refused) {
            throw failure(refused);
        }
        return waits;
    }

    private Failure failure(Throwable death) {
        broken = true;
        for (Throwable cause = death; cause != null; cause = cause.getCause()) {
            // The library wraps what a thread died of in an error of the same kind without a text.
            if (cause instanceof OutOfMemoryError && cause.getMessage() != null) {
                long alive = snapshot().stream().filter(Thread::isAlive).count();
                return Limits.refused(setting.threads(), alive, cause);
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
    public Computation compute(Handout handout, int[] counts, Begin begin) throws Failure {
        stopSpinning();
        if (setting.create() == Setting.Create.RUN) {
            close();
        }
        threads.forEach(thread -> thread.books = null);
        long beginNs = Clock.monotonicNs();
        begin.at(beginNs);
        if (setting.create() == Setting.Create.RUN) {
            createPool();
        }
        runLoop(handout, counts);
        Computation computation = Computation.of(beginNs, results(handout, beginNs), handout);
        startSpinning();
        return computation;
    }

    private void runLoop(Handout handout, int[] counts) throws Failure {
        int units = handout.cut.units();
        IntConsumer turn = number -> turn(number, handout, counts);
        try {
            if (setting.kind() == Setting.Kind.FORKJOIN) {
                await(pool.submit(new Halves(0, units, turn)));
            } else {
                // In this pool, and not in the common one, because that is where it is submitted.
                await(pool.submit(() -> IntStream.range(0, units).parallel().forEach(turn)));
            }
        } catch (OutOfMemoryError refused) {
            throw failure(refused);
        }
    }

    /** Waits for the loop, but not for ever: a thread that died may have taken a part with it. */
    private void await(ForkJoinTask<?> loop) throws Failure {
        while (true) {
            try {
                loop.get(LOOK_AFTER_MS, TimeUnit.MILLISECONDS);
                return;
            } catch (TimeoutException still) {
                if (gate.death() != null) {
                    throw failure(gate.death());
                }
            } catch (ExecutionException error) {
                throw failure(error.getCause());
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    /** The turns from {@code from} to {@code to}, split in halves down to one. */
    private static final class Halves extends RecursiveAction {
        private static final long serialVersionUID = 1L;

        private final int from;
        private final int to;
        private final transient IntConsumer turn;

        Halves(int from, int to, IntConsumer turn) {
            this.from = from;
            this.to = to;
            this.turn = turn;
        }

        @Override
        protected void compute() {
            if (to - from == 1) {
                turn.accept(from);
                return;
            }
            int middle = (from + to) >>> 1;
            invokeAll(new Halves(from, middle, turn), new Halves(middle, to, turn));
        }
    }

    private void turn(int number, Handout handout, int[] counts) {
        PoolThread thread = (PoolThread) Thread.currentThread();
        Books books = thread.books;
        if (books == null) {
            books = new Books();
            books.beginNs = Clock.monotonicNs();
            thread.books = books;
        }
        int unit = handout.claim(number, 0, books.pixelsDone);
        books.iterations += handout.cut.compute(unit, counts);
        books.pixelsDone = handout.cut.pixels(unit);
        books.pixels += books.pixelsDone;
        books.endNs = Clock.monotonicNs();
    }

    /** The books of all threads that there are; the last unit of each is not yet in the ledger. */
    private List<WorkerResult> results(Handout handout, long beginNs) {
        List<WorkerResult> results = new ArrayList<>();
        synchronized (threads) {
            for (PoolThread thread : threads) {
                Books books = thread.books;
                if (books == null) {
                    books = new Books();
                    books.beginNs = beginNs;
                    books.endNs = beginNs;
                }
                handout.claim(0, 0, books.pixelsDone);
                results.add(
                        new WorkerResult(
                                thread.getName(), thread.getPriority(), books.pixels,
                                books.iterations, books.beginNs, books.endNs));
            }
        }
        return results;
    }

    /** The library owns its threads while the loop runs; they busy-wait afterwards. */
    private void startSpinning() throws Failure {
        if (setting.afterLoop() == Setting.AfterLoop.SPIN) {
            spinners = submitWaits();
        }
    }

    private void stopSpinning() {
        gate.open();
        spinners.forEach(ForkJoinTask::join);
        spinners = List.of();
    }

    @Override
    public void close() {
        if (pool == null) {
            return;
        }
        gate.open();
        gate.wake(snapshot());
        pool.shutdownNow();
        try {
            pool.awaitTermination(broken ? 0 : END_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        pool = null;
    }
}
