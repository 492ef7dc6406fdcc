/**
 * Threads that allocate, beside a large live heap, under a collector that stops them all and works
 * in one thread (to be run with -XX:+UseSerialGC -Xmx160m -Xmn8m).
 */
public final class Garbage {
    private Garbage left;
    private Garbage right;
    private static Garbage live;

    private static Garbage tree(int depth) {
        Garbage it = new Garbage();
        if (depth > 0) {
            it.left = tree(depth - 1);
            it.right = tree(depth - 1);
        }
        return it;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        live = tree(20);
        Thread[] workers = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            workers[i] = new Thread(() -> {
                Garbage[] kept = new Garbage[64];
                for (int done = 0; done < 3000 / threads; done++) {
                    kept[done % kept.length] = tree(12);
                }
            });
            workers[i].start();
        }
        for (Thread worker : workers) worker.join();
    }
}
