import java.util.concurrent.ConcurrentHashMap;

/** Threads that update a ConcurrentHashMap by compute(), nearly always at one key. */
public final class HotKey {
    private static final ConcurrentHashMap<String, Long> TOTALS = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            all[i] = new Thread(() -> {
                long own = seed;
                for (int sale = 0; sale < 12_000 / threads; sale++) {
                    own = steps(8_000 + (own >>> 33) % 8_000, own);
                    String key = sale % 16 == 15 ? "others" : "total";
                    TOTALS.compute(key, (name, sum) -> steps(40_000, sum == null ? 1 : sum));
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long steps(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
