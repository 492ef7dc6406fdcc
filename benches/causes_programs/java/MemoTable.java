import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Prices of options, remembered in a synchronized map; computeIfAbsent of that wrapper holds its mutex
 * while it computes. Each of 12,000 prices is computed once (some 33 us), each of 36,000 requests then
 * takes 3 us outside: 0.4 s of 0.5 s are inside the mutex, and 2 workers or more gain 1.25 at most
 * by waiting for it: lock.
 */
public final class MemoTable {
    private static final int REQUESTS = 36_000;
    private static final int STEPS = 256;

    private static double price(int key) {
        double[] values = new double[STEPS + 1];
        double strike = 80 + key % 400 * 0.1;
        for (int i = 0; i <= STEPS; i++) values[i] = Math.max(0, 60 + i * 0.3 - strike);
        for (int step = STEPS; step > 0; step--) {
            for (int i = 0; i < step; i++) values[i] = 0.4998 * values[i] + 0.5001 * values[i + 1];
        }
        return values[0];
    }

    private static double margin(double price, int request) {
        double margin = price + request % 17;
        for (int i = 0; i < 1_200; i++) margin = margin * 0.9995 + 0.001;
        return margin;
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] workers = new Thread[Integer.parseInt(arguments[0])];
        Map<Integer, Double> prices = Collections.synchronizedMap(new HashMap<>());
        AtomicInteger taken = new AtomicInteger();
        double[] sums = new double[workers.length];
        for (int w = 0; w < workers.length; w++) {
            int own = w;
            workers[w] = new Thread(() -> {
                double sum = 0;
                for (int n = taken.getAndIncrement(); n < REQUESTS; n = taken.getAndIncrement()) {
                    int newest = n / 3;
                    int key = n % 3 == 0 ? newest : (int) (n * 7919L % (newest + 1));
                    sum += margin(prices.computeIfAbsent(key, MemoTable::price), n);
                }
                sums[own] = sum;
            });
            workers[w].start();
        }
        for (Thread worker : workers) worker.join();
        double total = 0;
        for (double sum : sums) total += sum;
        System.out.println(prices.size() + " " + Math.round(total));
    }
}
