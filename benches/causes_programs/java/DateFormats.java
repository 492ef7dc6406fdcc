import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.Locale;
import java.util.TimeZone;

/**
 * One SimpleDateFormat for all, guarded by its monitor at two places: where the times of 16 records
 * are written (some 6 microseconds) and where they are read back (some 14). Outside of it a worker
 * adds up 3000 dependent steps (4 microseconds). So more than 80 % exclude each other, and what two
 * workers do not gain, the lock takes; what they allocate is little and dies at once.
 */
public final class DateFormats {
    private static final int RECORDS = 16;
    private static final int ROUNDS = 16_000;
    private static final SimpleDateFormat FORMAT = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS", Locale.ROOT);

    static {
        FORMAT.setTimeZone(TimeZone.getTimeZone("UTC"));
    }

    private static void write(long[] times, String[] texts) {
        synchronized (FORMAT) {
            for (int i = 0; i < RECORDS; i++) texts[i] = FORMAT.format(new Date(times[i]));
        }
    }

    private static long read(String[] texts) throws ParseException {
        long sum = 0;
        synchronized (FORMAT) {
            for (String text : texts) sum += FORMAT.parse(text).getTime();
        }
        return sum;
    }

    private static long own(long seed) {
        for (int i = 0; i < 3_000; i++) seed = seed * 6364136223846793005L + 1442695040888963407L;
        return seed;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        Thread[] workers = new Thread[threads];
        long[] sums = new long[threads * 16];
        for (int w = 0; w < threads; w++) {
            int number = w;
            workers[w] = new Thread(() -> {
                long[] times = new long[RECORDS];
                String[] texts = new String[RECORDS];
                long seed = number + 1;
                long sum = 0;
                try {
                    for (int round = 0; round < ROUNDS / threads; round++) {
                        seed = own(seed);
                        for (int i = 0; i < RECORDS; i++) times[i] = 1_600_000_000_000L + (seed >>> (20 + i));
                        write(times, texts);
                        sum += read(texts);
                    }
                } catch (ParseException error) {
                    throw new IllegalStateException(error);
                }
                sums[number * 16] = sum;
            });
            workers[w].start();
        }
        for (Thread worker : workers) worker.join();
        System.out.println(sums[0]);
    }
}
