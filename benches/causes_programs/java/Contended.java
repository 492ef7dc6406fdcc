import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Threads that do a fixed number of operations, most of each in one synchronized method. */
public final class Contended {
    private long state = 1;

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        int operations = Integer.parseInt(arguments[1]);
        int held = Integer.parseInt(arguments[2]);
        Contended warm = new Contended();
        for (int i = 0; i < 20_000; i++) {
            warm.operate(100);
        }
        Contended shared = new Contended();
        Thread[] workers = new Thread[threads];
        report("{\"phase\":\"measure\",\"edge\":\"begin\"}");
        for (int i = 0; i < threads; i++) {
            int due = operations / threads + (i < operations % threads ? 1 : 0);
            workers[i] = new Thread(() -> shared.work(due, held));
            workers[i].start();
        }
        for (Thread worker : workers) {
            worker.join();
        }
        report("{\"phase\":\"measure\",\"edge\":\"end\"}");
        report("{\"indicator\":\"operations\",\"value\":" + operations + "}");
        if (shared.state == 0 || warm.state == 0) {
            throw new IllegalStateException("the work was left out");
        }
    }

    private void work(int due, int held) {
        long own = Thread.currentThread().hashCode() | 1;
        for (int done = 0; done < due; done++) {
            operate(held);
            own = spin(own, held / 4);
        }
        if (own == 0) {
            throw new IllegalStateException();
        }
    }

    private synchronized void operate(int steps) {
        state = spin(state, steps);
    }

    private static long spin(long value, int steps) {
        for (int i = 0; i < steps; i++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        return value;
    }

    private static void report(String line) throws IOException {
        String channel = System.getenv("CONCURVE_REPORT");
        if (channel != null) {
            try (FileOutputStream out = new FileOutputStream("/dev/fd/" + channel)) {
                out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
    }
}
