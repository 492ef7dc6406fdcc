import java.util.concurrent.atomic.LongAdder;

/** Threads that count each step in one LongAdder, which keeps a cell for each of them. */
public final class Striped {
    private static final LongAdder STEPS = new LongAdder();

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                for (int step = 0; step < 200_000_000 / threads; step++) STEPS.increment();
            });
            all[i].start();
        }
        for (Thread one : all) one.join();
        if (STEPS.sum() == 0) throw new IllegalStateException("the work was left out");
    }
}
