import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;

/**
 * Fork and join: the primes below 3,000,000 are counted by halves of halves down to 4,000 numbers,
 * in a ForkJoinPool of its own. Larger numbers take longer, so equal ranges are not equal work, but
 * there are a thousand leaves of 0.5 to 1 ms and idle workers steal: none waits for more than one
 * of them. Forking costs far less than a leaf, nothing is shared or allocated. Nothing limits.
 */
public final class CountedPrimes {
    private static final int LEAF = 4_000;

    private static final class Count extends RecursiveTask<Integer> {
        private static final long serialVersionUID = 1L;
        private final int from;
        private final int to;

        Count(int from, int to) {
            this.from = from;
            this.to = to;
        }

        @Override
        protected Integer compute() {
            if (to - from <= LEAF) {
                int found = 0;
                for (int number = from; number < to; number++) if (prime(number)) found++;
                return found;
            }
            int middle = (from + to) >>> 1;
            Count left = new Count(from, middle);
            Count right = new Count(middle, to);
            left.fork();
            int rightFound = right.compute();
            return left.join() + rightFound;
        }
    }

    private static boolean prime(int number) {
        if (number < 4) return number > 1;
        if (number % 2 == 0) return false;
        for (int divisor = 3; divisor * divisor <= number; divisor += 2) {
            if (number % divisor == 0) return false;
        }
        return true;
    }

    public static void main(String[] arguments) {
        ForkJoinPool pool = new ForkJoinPool(Integer.parseInt(arguments[0]));
        int found = pool.invoke(new Count(0, 3_000_000));
        pool.shutdown();
        System.out.println(found);
    }
}
