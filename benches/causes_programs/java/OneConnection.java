import java.util.concurrent.ArrayBlockingQueue;

/**
 * Threads that borrow the only connection of a pool for each query. The database answers after 2
 * ms; what a thread does with an answer takes a fifth of a millisecond.
 */
public final class OneConnection {
    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        ArrayBlockingQueue<String> pool = new ArrayBlockingQueue<>(1);
        pool.put("connection");
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            all[i] = new Thread(() -> {
                long own = seed;
                for (int query = 0; query < 160 / threads; query++) {
                    own = used(answered(pool) + own);
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long answered(ArrayBlockingQueue<String> pool) {
        try {
            String connection = pool.take();
            try {
                Thread.sleep(2);
                return connection.length();
            } finally {
                pool.put(connection);
            }
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static long used(long seed) {
        for (int i = 0; i < 200_000; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
