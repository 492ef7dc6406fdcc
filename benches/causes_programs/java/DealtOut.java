import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** A pool of threads that gets a short task each 2 ms: it has less to do than one thread could. */
public final class DealtOut {
    private static long sum;

    public static void main(String[] arguments) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(arguments[0]));
        for (int task = 0; task < 200; task++) {
            long seed = task + 1;
            pool.execute(() -> add(used(seed)));
            Thread.sleep(2);
        }
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.SECONDS);
        if (sum == 0) throw new IllegalStateException("the work was left out");
    }

    private static synchronized void add(long value) {
        sum += value;
    }

    private static long used(long seed) {
        for (int i = 0; i < 200_000; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
