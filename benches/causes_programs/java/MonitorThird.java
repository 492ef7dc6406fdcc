/** A monitor that is held for a third of each operation, of unequal lengths: it costs a part of what the second thread is worth. */
public final class MonitorThird {
    private static long total = 1;

    private static long compute(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    private static synchronized void add(long own) {
        total = compute(60_000 + (total >>> 33) % 80_000, total + own);
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            long seed = t + 1;
            all[t] = new Thread(() -> {
                long own = seed;
                for (int i = 0; i < 600 / threads; i++) {
                    own = compute(50_000 + (own >>> 33) % 300_000, own);
                    add(own);
                }
            });
            all[t].start();
        }
        for (Thread one : all) one.join();
        if (total == 0) throw new IllegalStateException("the work was left out");
    }
}
