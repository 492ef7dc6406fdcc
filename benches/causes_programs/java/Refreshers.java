import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A scheduled pool keeps six exchange rates fresh: every 20 ms, 30 times, some 20 us each. The clock
 * decides when it ends (0.6 s) whatever the number of threads; they run for 1 % of it and wait for
 * the next time, not for one another, and the pool may be larger than its work: none.
 */
public final class Refreshers {
    private static double fresh(int currency) {
        double rate = 1 + currency;
        for (int i = 0; i < 4_000; i++) rate = rate * 0.9999 + 0.0002;
        return rate;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(threads);
        Map<Integer, Double> rates = new ConcurrentHashMap<>();
        CountDownLatch left = new CountDownLatch(6 * 30);
        for (int i = 0; i < 6; i++) {
            int currency = i;
            pool.scheduleAtFixedRate(() -> {
                rates.put(currency, fresh(currency));
                left.countDown();
            }, currency * 3, 20, TimeUnit.MILLISECONDS);
        }
        left.await();
        pool.shutdownNow();
        System.out.println(rates.size());
    }
}
