import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;

/**
 * Counts primes with a parallel stream: {@code java Primes.java THREADS}.
 *
 * <p>The stream runs in a pool of its own. Its threads alone compute there; in the common pool the
 * thread that waits computes as well, so {@code parallelism=1} would be two threads.
 */
class Primes {
    private static final int LIMIT = 3_000_000;

    public static void main(String[] arguments) throws Exception {
        int threads = arguments.length == 1 ? Integer.parseInt(arguments[0]) : 1;
        ForkJoinPool pool = new ForkJoinPool(threads);
        report("{\"phase\":\"measure\",\"edge\":\"begin\"}");
        long found =
                pool.submit(
                                () ->
                                        IntStream.range(2, LIMIT)
                                                .parallel()
                                                .filter(Primes::isPrime)
                                                .count())
                        .get();
        report("{\"phase\":\"measure\",\"edge\":\"end\"}");
        pool.shutdown();
        System.out.println(found + " primes below " + LIMIT);
    }

    private static boolean isPrime(int number) {
        for (int divisor = 2; (long) divisor * divisor <= number; divisor++) {
            if (number % divisor == 0) {
                return false;
            }
        }
        return true;
    }

    /** Tells Concurve, if it measures, that the start of the JVM is over: its time does not count. */
    private static void report(String line) throws IOException {
        String descriptor = System.getenv("CONCURVE_REPORT");
        if (descriptor == null) {
            return;
        }
        try (OutputStream channel = new FileOutputStream("/proc/self/fd/" + descriptor)) {
            channel.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        }
    }
}
