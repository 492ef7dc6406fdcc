import java.io.BufferedReader;
import java.io.StringReader;
import java.util.concurrent.ForkJoinPool;

/**
 * A parallel stream of 1,400 lines. Such a stream is not cut in halves: the first 1,024 lines are
 * one part of it, so that one thread has 73 % of the work.
 */
public final class Lines {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        StringBuilder text = new StringBuilder();
        for (int line = 0; line < 1_400; line++) text.append("line ").append(line).append('\n');
        BufferedReader reader = new BufferedReader(new StringReader(text.toString()));
        ForkJoinPool pool = new ForkJoinPool(threads);
        long sum = pool.submit(() -> reader.lines().parallel().mapToLong(Lines::score).sum()).get();
        if (sum == 0) throw new IllegalStateException("the work was left out");
    }

    private static long score(String line) {
        long score = line.hashCode();
        for (int i = 0; i < 900_000; i++) score = score * 6364136223846793005L + 1;
        return score;
    }
}
