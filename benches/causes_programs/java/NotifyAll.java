/** A table of jobs: whoever adds one, or ends one, notifies all threads that wait at its monitor. */
public final class NotifyAll {
    private static int queued;
    private static int running;
    private static boolean over;

    private static long compute(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    private static void serve(Object table) {
        long own = 1;
        try {
            for (;;) {
                synchronized (table) {
                    while (queued == 0 && !over) table.wait();
                    if (queued == 0) break;
                    queued--;
                    running++;
                }
                own = compute(20_000, own);
                synchronized (table) {
                    running--;
                    table.notifyAll();
                }
            }
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
        if (own == 0) throw new IllegalStateException("the work was left out");
    }

    public static void main(String[] arguments) throws InterruptedException {
        Object table = new Object();
        Thread[] all = new Thread[Integer.parseInt(arguments[0])];
        for (int t = 0; t < all.length; t++) {
            all[t] = new Thread(() -> serve(table));
            all[t].start();
        }
        for (int job = 0; job < 12_000; job++) {
            synchronized (table) {
                while (queued + running > 1) table.wait();
                queued++;
                table.notifyAll();
            }
        }
        synchronized (table) {
            over = true;
            table.notifyAll();
        }
        for (Thread one : all) one.join();
    }
}
