/**
 * Threads that allocate much, of which nothing lives for long: a collection has hardly anything to
 * copy (to be run with -XX:+UseSerialGC -Xmn12m).
 */
public final class ShortLived {
    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            long seed = i + 1;
            all[i] = new Thread(() -> {
                long own = seed;
                for (int request = 0; request < 6_000_000 / threads; request++) {
                    StringBuilder text = new StringBuilder("request ");
                    text.append(request).append(' ').append(own);
                    own = own * 31 + text.toString().hashCode();
                }
                if (own == 0) throw new IllegalStateException("the work was left out");
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
    }
}
