/** Threads that share nothing. */
public final class Perfect {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            workers[i] = new Thread(() -> {
                long own = seed;
                for (int part = 0; part < 16_000 / threads; part++) own = compute(50_000, own);
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
