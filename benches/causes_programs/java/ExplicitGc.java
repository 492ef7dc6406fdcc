import java.util.ArrayList;

/**
 * Threads that ask for a collection after every few requests, beside a large live heap (to be run
 * with -XX:+UseSerialGC): all of them stand still meanwhile.
 */
public final class ExplicitGc {
    private static final ArrayList<String> SESSIONS = new ArrayList<>();

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        for (int session = 0; session < 250_000; session++) SESSIONS.add("session " + session);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            all[i] = new Thread(() -> {
                long own = seed;
                for (int request = 0; request < 400 / threads; request++) {
                    own = served(own);
                    if (request % 16 == 15) System.gc();
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static long served(long seed) {
        for (int i = 0; i < 1_000_000; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
