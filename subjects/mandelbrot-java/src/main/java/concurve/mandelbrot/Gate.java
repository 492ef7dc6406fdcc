package concurve.mandelbrot;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Where the workers wait for a computation to start and the main thread for it to end.
 *
 * <p>Not a barrier or a latch of the library: the main thread must know that all are waiting
 * <em>before</em> it starts the clock, must be able to send a part of the crew home, and must learn
 * of a death. And the workers must not need a lock to get through.
 */
final class Gate {
    /** Turns of a busy-waiting worker between two offers of its CPU to others. */
    private static final int SPINS = 1000;

    private final boolean spin;
    private final Thread main = Thread.currentThread();

    /** Workers that wait at the gate. */
    private final AtomicInteger waiting = new AtomicInteger();

    /** The main thread wants to be woken when so many do, and not for each of hundreds. */
    private volatile int wanted = Integer.MAX_VALUE;

    private volatile int round;
    private volatile boolean closed;
    private volatile Throwable death;

    /** A gate whose main thread is the current one. */
    Gate(boolean spin) {
        this.spin = spin;
    }

    /** Times the gate was opened. */
    int round() {
        return round;
    }

    /**
     * Waits for the gate to open once more than {@code passed} times.
     *
     * @return false: go home
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
     * Waits until {@code workers} workers stand at the gate.
     *
     * @return the death of one of them, or null
     */
    Throwable await(int workers) {
        wanted = workers;
        while (waiting.get() < workers && death == null) {
            LockSupport.park(this);
        }
        return death;
    }

    /** Opens the gate; {@link #wake} must follow for those who sleep at it. */
    void open() {
        waiting.set(0);
        round = round + 1;
    }

    /** Sends everybody home; {@link #wake} must follow. */
    void close() {
        closed = true;
    }

    /** Lets a new crew in after {@link #close}, when the old one has gone. */
    void reopen() {
        closed = false;
        waiting.set(0);
    }

    /** Wakes those who sleep. */
    void wake(Iterable<Thread> workers) {
        if (!spin) {
            workers.forEach(LockSupport::unpark);
        }
    }

    /** The death of a worker, or null. */
    Throwable death() {
        return death;
    }

    /** Reports the death of a worker. */
    void breakDown(Throwable cause) {
        death = cause;
        LockSupport.unpark(main);
    }
}
