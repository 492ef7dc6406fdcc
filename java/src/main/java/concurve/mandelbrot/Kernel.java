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
     * Number of the first z outside the circle of radius 2, from z₀ = 0; {@code limit} if none is
     * before it. Both are unsigned.
     *
     * <p>The recurrence is a chain: the next z waits for this one. Doubles of both parts are carried
     * along, as in the native kernel, and −im beside them: the compiler of HotSpot for x86 has no
     * instruction for a negated product and would put a negation into the chain. Doubling and
     * negation are exact, so the values are those of the plain recurrence.
     */
    static int escapeTime(double re0, double im0, int limit) {
        double re02 = re0 + re0;
        double im02 = im0 + im0;
        double minus0 = -im0;
        double re = 0.0;
        double im = 0.0;
        double minus = 0.0;
        double re2 = 0.0;
        double im2 = 0.0;
        for (int count = 0; count != limit; count++) {
            if (Math.fma(re, re, im * im) > 4.0) {
                return count;
            }
            double rest = Math.fma(minus, im, re0);
            double rest2 = Math.fma(minus, im2, re02);
            im2 = Math.fma(re2, im2, im02);
            im = Math.fma(re2, im, im0);
            minus = Math.fma(re2, minus, minus0);
            re2 = Math.fma(re2, re, rest2);
            re = Math.fma(re, re, rest);
        }
        return limit;
    }
}
