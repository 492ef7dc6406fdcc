package concurve.mandelbrot;

/** Escape time, pixel by pixel. Every kernel gives the same iteration count for the same point. */
final class Kernel {
    private Kernel() {}

    /**
     * Computes one unit of work into {@code counts}.
     *
     * @return the sum of the iteration counts of its pixels
     */
    static long compute(View view, int x, int y, int width, int height, int[] counts) {
        long sum = 0;
        int limit = view.iterations();
        for (int line = y; line < y + height; line++) {
            double im = view.im(line);
            int first = line * view.width() + x;
            for (int column = 0; column < width; column++) {
                int count = escapeTime(view.re(x + column), im, limit);
                counts[first + column] = count;
                sum += Integer.toUnsignedLong(count);
            }
        }
        return sum;
    }

    /**
     * One; the compiler does not know it. With a constant step HotSpot unrolls the loop below, which
     * takes registers and makes it 5 to 10 % slower.
     */
    @SuppressWarnings("FieldMayBeFinal")
    private static int step = 1;

    /**
     * Number of the first z outside the circle of radius 2, from z₀ = 0; {@code limit} if none is
     * before it. Both are unsigned.
     *
     * <p>The recurrence is a chain: the next z waits for this one. Doubles of both parts are carried
     * along, as in the native kernel. HotSpot for x86 has no instruction for a negated product: the
     * one negation is shared, and done beside the test. Doubling and negation are exact, so the values
     * are those of the plain recurrence. Every other form that was tried is slower: measure a change
     * with {@code benches/jvm.py}.
     */
    static int escapeTime(double re0, double im0, int limit) {
        double re02 = re0 + re0;
        double im02 = im0 + im0;
        double re = 0.0;
        double im = 0.0;
        double re2 = 0.0;
        double im2 = 0.0;
        int one = step;
        for (int count = 0; count != limit; count += one) {
            double square = im * im;
            double minus = -im;
            if (Math.fma(re, re, square) > 4.0) {
                return count;
            }
            double rest = Math.fma(minus, im, re0);
            double rest2 = Math.fma(minus, im2, re02);
            im2 = Math.fma(re2, im2, im02);
            im = Math.fma(re2, im, im0);
            re2 = Math.fma(re2, re, rest2);
            re = Math.fma(re, re, rest);
        }
        return limit;
    }
}
