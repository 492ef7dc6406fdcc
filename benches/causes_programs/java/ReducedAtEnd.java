import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Tasks in a pool of threads; the first thread adds up their results, while the pool is idle. */
public final class ReducedAtEnd {
    private static final int TASKS = 64;
    private static final int ALL = 600_000_000;
    private static final int REDUCTION = 300_000_000;

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Long>> results = new ArrayList<>();
        for (int task = 0; task < TASKS; task++) {
            long seed = task + 1;
            results.add(pool.submit(() -> compute(ALL / TASKS, seed)));
        }
        long sum = 0;
        for (Future<Long> result : results) sum += result.get();
        sum = compute(REDUCTION, sum);
        pool.shutdown();
        if (sum == 0) throw new IllegalStateException("the work was left out");
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
