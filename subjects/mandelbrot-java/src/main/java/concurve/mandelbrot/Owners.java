package concurve.mandelbrot;

import java.nio.ShortBuffer;

/**
 * Which worker computes which pixel, for a program that shows it.
 *
 * <p>A worker writes one number for each unit that it takes, and nothing for a pixel: the number in its
 * name (1 is {@code Thread-1}), 0 where nobody has the unit yet. Workers from 65,535 on share that number.
 */
final class Owners {
    private static final int MOST = 0xFFFF;

    private final Cut cut;
    private final short[] byUnit;

    Owners(Cut cut) {
        this.cut = cut;
        this.byUnit = new short[cut.units()];
    }

    /** Worker {@code worker}, counted from 0, takes a unit. */
    void take(int unit, int worker) {
        byUnit[unit] = (short) Math.min(worker + 1, MOST);
    }

    /** Puts the workers of all pixels, line by line from the top left. */
    void putPixels(ShortBuffer pixels) {
        for (int y = 0; y < cut.view().height(); y++) {
            int first = y / cut.unitHeight() * cut.columns();
            for (int column = 0; column < cut.columns(); column++) {
                short owner = byUnit[first + column];
                int left = cut.view().width() - column * cut.unitWidth();
                for (int x = Math.min(cut.unitWidth(), left); x > 0; x--) {
                    pixels.put(owner);
                }
            }
        }
    }
}
