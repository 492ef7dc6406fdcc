import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Threads that read prices under a lock of readers and writers; every eighth request computes them anew. */
public final class CachedPrices {
    private static final ReentrantReadWriteLock LOCK = new ReentrantReadWriteLock();
    private static final long[] PRICES = new long[64];

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            all[i] = new Thread(() -> {
                long own = seed;
                for (int request = 0; request < 16_000 / threads; request++) {
                    own = request % 8 == 7 ? renewed(own) : read(own);
                    own = steps(4_000 + (own >>> 33) % 4_000, own);
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long read(long own) {
        LOCK.readLock().lock();
        try {
            return steps(12_000, own + PRICES[(int) (own >>> 58)]);
        } finally {
            LOCK.readLock().unlock();
        }
    }

    private static long renewed(long own) {
        LOCK.writeLock().lock();
        try {
            return PRICES[(int) (own >>> 58)] = steps(120_000, own);
        } finally {
            LOCK.writeLock().unlock();
        }
    }

    private static long steps(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
