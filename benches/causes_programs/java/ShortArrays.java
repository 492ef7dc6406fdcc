/** Threads that fill arrays which nothing keeps (to be run with -XX:+UseSerialGC -Xmn16m). */
public final class ShortArrays {
    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int seed = t + 1;
            all[t] = new Thread(() -> {
                long own = seed;
                for (int request = 0; request < 1_500_000 / threads; request++) {
                    long[] row = new long[64];
                    for (int i = 0; i < row.length; i++) row[i] = own * 31 + i;
                    own += row[(int) (own >>> 58)];
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[t].start();
        }
        for (Thread one : all) one.join();
    }
}
