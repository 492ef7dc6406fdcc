import java.io.OutputStream;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.logging.StreamHandler;

/**
 * Threads that log a line for each small request with java.util.logging. The handler formats and
 * writes one line at a time, which takes longer than the request.
 */
public final class Logged {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        Logger log = Logger.getLogger("requests");
        log.setUseParentHandlers(false);
        log.addHandler(new StreamHandler(OutputStream.nullOutputStream(), new SimpleFormatter()));
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            workers[i] = new Thread(() -> {
                long own = seed;
                for (int request = 0; request < 40_000 / threads; request++) {
                    own = compute(1_000, own);
                    log.info("answered with " + own);
                }
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
