/** One thread that computes and allocates; the other threads are those of the JVM. */
public final class Single {
    private static final long[][] kept = new long[64][];

    public static void main(String[] arguments) {
        long own = 1;
        for (int part = 0; part < 4000; part++) {
            own = compute(100_000, own);
            kept[part % kept.length] = new long[2048];
            kept[part % kept.length][0] = own;
        }
        if (own == 0) throw new IllegalStateException("the work was left out");
    }

    private static long compute(int iterations, long seed) {
        for (int i = 0; i < iterations; i++) seed = seed * 6364136223846793005L + 1;
        return seed;
    }
}
