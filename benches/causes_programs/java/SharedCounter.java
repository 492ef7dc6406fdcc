import java.util.concurrent.atomic.AtomicLong;

/** Threads that count each step in one AtomicLong. */
public final class SharedCounter {
    private static final AtomicLong STEPS = new AtomicLong();

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                for (int step = 0; step < 90_000_000 / threads; step++) {
                    STEPS.incrementAndGet();
                }
            });
            all[i].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
    }
}
