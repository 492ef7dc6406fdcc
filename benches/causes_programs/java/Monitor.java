/** Threads that do most of each operation in one synchronized method. */
public final class Monitor {
    private long state = 1;

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        Monitor shared = new Monitor();
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            workers[i] = new Thread(() -> {
                long own = seed;
                for (int done = 0; done < 8000 / threads; done++) {
                    own = compute(20_000, own);
                    shared.operate();
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            workers[i].start();
        }
        for (Thread worker : workers) worker.join();
    }

    private synchronized void operate() {
        state = compute(80_000, state);
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
