import java.util.stream.IntStream;

/** A sum in the common pool of so many threads: the thread that asks computes, too. */
public final class CommonPool {
    public static void main(String[] arguments) {
        System.setProperty("java.util.concurrent.ForkJoinPool.common.parallelism", arguments[0]);
        long sum = IntStream.range(0, 6_000).parallel().mapToLong(CommonPool::task).sum();
        if (sum == 0) throw new IllegalStateException("the work was left out");
    }

    private static long task(int number) {
        long seed = number + 1;
        for (int step = 0; step < 100_000; step++) {
            seed ^= seed << 13;
            seed ^= seed >>> 7;
            seed ^= seed << 17;
        }
        return seed;
    }
}
