/** Threads with a connection of their own each: an answer comes after 2 ms, for as many as ask. */
public final class OwnConnections {
    private static final int QUERIES = 160;

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                long own = 1;
                for (int query = 0; query < QUERIES / threads; query++) own = used(own + answer());
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long answer() {
        try {
            Thread.sleep(2);
            return 1;
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static long used(long seed) {
        for (int i = 0; i < 200_000; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
