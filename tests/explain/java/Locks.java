import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait for a monitor and for a ReentrantLock. Arguments: threads, rounds, and how it ends. */
public class Locks {
    static final class Counter {
        long value;

        synchronized void add() {
            hold(); // monitor
            value++;
        }
    }

    static final ReentrantLock LOCK = new ReentrantLock();

    static void append() {
        LOCK.lock(); // lock
        try {
            hold();
        } finally {
            LOCK.unlock();
        }
    }

    static void hold() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        int rounds = Integer.parseInt(args[1]);
        Counter counter = new Counter();
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < rounds; n++) {
                    counter.add();
                    append();
                }
            }, "worker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (args.length > 2) {
            Runtime.getRuntime().halt(0);
        }
    }
}
