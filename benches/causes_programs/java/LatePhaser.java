import java.util.concurrent.Phaser;

/** Rounds of a simulation with a Phaser: in each, another thread has two thirds of the work of all. */
public final class LatePhaser {
    private static final int ROUNDS = 120;
    private static final int ROUND = 5_000_000;

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Phaser rounds = new Phaser(threads);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            int index = i;
            all[i] = new Thread(() -> {
                long own = index + 1;
                for (int round = 0; round < ROUNDS; round++) {
                    boolean isLate = round % threads == index;
                    own = compute(part(isLate, threads), own);
                    rounds.arriveAndAwaitAdvance();
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }

    private static int part(boolean isLate, int threads) {
        if (threads == 1) return ROUND;
        return isLate ? ROUND / 3 * 2 : ROUND / 3 / (threads - 1);
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
