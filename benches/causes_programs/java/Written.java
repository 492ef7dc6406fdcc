import java.util.concurrent.ArrayBlockingQueue;

/** Threads that hand their results to one thread, which needs more time for each than they do. */
public final class Written {
    private static final int RESULTS = 4000;

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int each = RESULTS / threads;
        ArrayBlockingQueue<Long> results = new ArrayBlockingQueue<>(32);
        Thread writer = new Thread(() -> {
            long sum = 1;
            for (int done = 0; done < each * threads; done++) sum = compute(150_000, sum ^ taken(results));
            if (sum == 0) throw new IllegalStateException("the work was left out");
        }, "writer");
        writer.start();
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            workers[i] = new Thread(() -> {
                long own = seed;
                for (int done = 0; done < each; done++) {
                    own = compute(100_000, own);
                    put(results, own);
                }
            });
            workers[i].start();
        }
        for (Thread worker : workers) worker.join();
        writer.join();
    }

    private static long taken(ArrayBlockingQueue<Long> results) {
        try {
            return results.take();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static void put(ArrayBlockingQueue<Long> results, long value) {
        try {
            results.put(value);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
