import java.util.concurrent.Semaphore;

/** Threads that ask a service which takes one request at a time: it answers after 3 ms. */
public final class OnePermit {
    private static final Semaphore PERMITS = new Semaphore(1);
    private static final int REQUESTS = 120;

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                long own = 1;
                for (int request = 0; request < REQUESTS / threads; request++) own = used(own + answer());
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long answer() {
        PERMITS.acquireUninterruptibly();
        try {
            Thread.sleep(3);
            return 1;
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        } finally {
            PERMITS.release();
        }
    }

    private static long used(long seed) {
        for (int i = 0; i < 300_000; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
