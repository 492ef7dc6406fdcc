package concurve.mandelbrot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class HandoutTest {
    private static Cut cut(Cut.Grain grain, int tile) {
        return Cut.of(View.of(Location.builtIn(), 1016, 718, 10), grain, tile);
    }

    @Test
    void everyUnitIsHandedOutOnce() {
        Cut cut = Cut.of(View.of(Location.builtIn(), 37, 29, 10), Cut.Grain.TILE, 5);
        for (Handout.Sync sync : Handout.Sync.values()) {
            int[] seen = new int[cut.units()];
            Handout handout = Handout.of(cut, sync, 7);
            long pixels = 0;
            for (int worker = 0; worker < 7; worker++) {
                int done = 0;
                for (int place = 0, unit; (unit = handout.claim(worker, place, done)) >= 0; place++) {
                    seen[unit]++;
                    done = cut.pixels(unit);
                    pixels += done;
                }
            }
            for (int times : seen) {
                assertEquals(1, times, sync::toString);
            }
            assertEquals(37 * 29, pixels);
            assertEquals(sync == Handout.Sync.METHOD ? pixels : -1, handout.pixelsCounted());
        }
    }

    @Test
    void staticSharesOfLinesAreDealtRoundRobin() {
        Handout handout = Handout.of(cut(Cut.Grain.LINE, 1), Handout.Sync.NONE, 8);
        assertEquals(3, handout.claim(3, 0, 0));
        assertEquals(11, handout.claim(3, 1, 0));
        assertEquals(Handout.NONE, handout.claim(3, 90, 0));
    }

    @Test
    void staticSharesTakeNoWholeColumns() {
        // 32 tiles in a row and 8 | 1016: plain round robin would deal out columns.
        Cut cut = cut(Cut.Grain.PIXEL, 1);
        Handout handout = Handout.of(cut, Handout.Sync.NONE, 8);
        Set<Integer> columns = new HashSet<>();
        for (int place = 0, unit; (unit = handout.claim(0, place, 0)) >= 0; place++) {
            columns.add(unit % cut.columns());
        }
        assertTrue(columns.size() > 1016 / 2, "" + columns.size());
    }
}
