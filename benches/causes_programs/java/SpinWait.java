import java.util.concurrent.atomic.AtomicBoolean;

/** A lock of the program's own that tells the CPU that it spins; it is held for two thirds of each operation. */
public final class SpinWait {
    private static final AtomicBoolean TAKEN = new AtomicBoolean();
    private static long total = 1;

    private static long compute(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            long seed = t + 1;
            all[t] = new Thread(() -> {
                long own = seed;
                for (int i = 0; i < 6_000 / threads; i++) {
                    own = compute(5_000 + (own >>> 33) % 20_000, own);
                    while (TAKEN.getAndSet(true)) Thread.onSpinWait();
                    total = compute(20_000 + (total >>> 33) % 30_000, total);
                    TAKEN.set(false);
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[t].start();
        }
        for (Thread one : all) one.join();
        if (total == 0) throw new IllegalStateException("the work was left out");
    }
}
