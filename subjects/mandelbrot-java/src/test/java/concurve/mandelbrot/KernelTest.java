package concurve.mandelbrot;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Random;
import org.junit.jupiter.api.Test;

class KernelTest {
    /** The definition of decision 8, word for word. */
    private static int escapeTimeAsDefined(double re0, double im0, int limit) {
        double re = 0.0;
        double im = 0.0;
        for (int count = 0; count < limit; count++) {
            if (Math.fma(re, re, im * im) > 4.0) {
                return count;
            }
            double rest = Math.fma(-im, im, re0);
            im = Math.fma(re + re, im, im0);
            re = Math.fma(re, re, rest);
        }
        return limit;
    }

    @Test
    void knownPoints() {
        assertEquals(100, Kernel.escapeTime(0.0, 0.0, 100));
        assertEquals(100, Kernel.escapeTime(-2.0, 0.0, 100));
        assertEquals(100, Kernel.escapeTime(-1.0, 0.0, 100));
        assertEquals(3, Kernel.escapeTime(1.0, 0.0, 100));
        assertEquals(1, Kernel.escapeTime(3.0, 0.0, 100));
        assertEquals(1, Kernel.escapeTime(1e300, -1e300, 100));
        assertEquals(1, Kernel.escapeTime(3.0, 0.0, 1));
    }

    @Test
    void carriedDoublesChangeNothing() {
        Random random = new Random(1);
        for (int i = 0; i < 20_000; i++) {
            double re = random.nextDouble() * 4 - 2.5;
            double im = random.nextDouble() * 3 - 1.5;
            assertEquals(
                    escapeTimeAsDefined(re, im, 500), Kernel.escapeTime(re, im, 500), re + " " + im);
        }
    }

    @Test
    void norDoTheyForAnyBits() {
        Random random = new Random(2);
        for (int i = 0; i < 20_000; i++) {
            double re = Double.longBitsToDouble(random.nextLong());
            double im = Double.longBitsToDouble(random.nextLong());
            if (Double.isFinite(re) && Double.isFinite(im)) {
                assertEquals(
                        escapeTimeAsDefined(re, im, 50), Kernel.escapeTime(re, im, 50), re + " " + im);
            }
        }
    }
}
