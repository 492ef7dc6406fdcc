import java.util.concurrent.CyclicBarrier;

/** Rounds with a CyclicBarrier: one thread, another in each round, has three times the work of the others. */
public class LateBarrier {
    static final int ROUNDS = 100;

    static long compute(long iterations, long seed) {
        for (long i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        long share = 12_000_000L / (threads + 2);
        CyclicBarrier barrier = new CyclicBarrier(threads);
        long[] sums = new long[threads];
        Thread[] all = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            int own = index;
            all[index] = new Thread(() -> {
                try {
                    for (int round = 0; round < ROUNDS; round++) {
                        boolean isSlow = threads == 1 || round % threads == own;
                        sums[own] = compute(isSlow ? 3 * share : share, sums[own]);
                        barrier.await();
                    }
                } catch (Exception problem) {
                    throw new IllegalStateException(problem);
                }
            });
            all[index].start();
        }
        for (Thread thread : all) thread.join();
    }
}
