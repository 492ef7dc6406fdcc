import java.util.concurrent.locks.ReentrantLock;

/** Threads that do most of each operation while they hold one ReentrantLock. */
public final class Parked {
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static long state = 1;

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            workers[i] = new Thread(() -> {
                long own = seed;
                for (int done = 0; done < 8000 / threads; done++) {
                    own = compute(20_000, own);
                    LOCK.lock();
                    try {
                        state = compute(80_000, state);
                    } finally {
                        LOCK.unlock();
                    }
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            workers[i].start();
        }
        for (Thread worker : workers) worker.join();
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
