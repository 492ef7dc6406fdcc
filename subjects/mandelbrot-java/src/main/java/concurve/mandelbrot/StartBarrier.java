package concurve.mandelbrot;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * A reusable barrier at which the workers wait for a computation to start and the main thread for it
 * to end.
 *
 * <p>The barriers and latches of the library are not sufficient: the main thread must know that all
 * workers wait <em>before</em> it starts the clock, must be able to end the workers that were
 * created, and must be notified when one dies. Workers pass without a lock.
 */
final class StartBarrier {
    /** Spins of a busy-waiting worker before it yields its CPU. */
    private static final int SPINS = 1000;

    private final boolean spin;
    private final Thread main = Thread.currentThread();

    /** Number of workers that wait at the barrier. */
    private final AtomicInteger waiting = new AtomicInteger();

    /** The number of waiting workers at which the main thread is woken, once instead of for each. */
    private volatile int wanted = Integer.MAX_VALUE;

    private volatile int round;
    private volatile boolean closed;
    private volatile Throwable death;

    /** A barrier whose main thread is the calling one. */
    StartBarrier(boolean spin) {
        this.spin = spin;
    }

    /** How often the barrier was opened. */
    int round() {
        return round;
    }

    /**
     * Waits until the barrier has opened more often than {@code passed} times.
     *
     * @return false if the barrier was closed and the worker is to end
     */
    boolean enter(int passed) {
        if (round == passed && !closed) {
            arrive();
            while (round == passed && !closed) {
                pause();
            }
        }
        return !closed;
    }

    private void arrive() {
        if (waiting.incrementAndGet() == wanted) {
            LockSupport.unpark(main);
        }
    }

    /**
     * Busy-waiting workers yield now and then: without it, one under a real-time policy or on a
     * carrier thread would never let another compute.
     */
    private void pause() {
        if (!spin) {
            LockSupport.park(this);
            return;
        }
        int passed = round;
        for (int turn = 0; turn < SPINS && round == passed && !closed; turn++) {
            Thread.onSpinWait();
        }
        Thread.yield();
    }

    /**
     * Waits until {@code workers} workers wait at the barrier.
     *
     * @return what one of them died of, or null
     */
    Throwable await(int workers) {
        wanted = workers;
        while (waiting.get() < workers && death == null) {
            LockSupport.park(this);
        }
        return death;
    }

    /** Opens the barrier; {@link #wake} must follow for workers that sleep at it. */
    void open() {
        waiting.set(0);
        round = round + 1;
    }

    /** Ends all workers; {@link #wake} must follow. */
    void close() {
        closed = true;
    }

    /** Makes the barrier usable again after {@link #close}, when all workers have ended. */
    void reopen() {
        closed = false;
        waiting.set(0);
    }

    /** Wakes workers that sleep at the barrier. */
    void wake(Iterable<Thread> workers) {
        if (!spin) {
            workers.forEach(LockSupport::unpark);
        }
    }

    /** What a worker died of, or null. */
    Throwable death() {
        return death;
    }

    /** Tells the main thread that a worker died. */
    void workerDied(Throwable cause) {
        death = cause;
        LockSupport.unpark(main);
    }
}
