package concurve.mandelbrot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The live file ends with the whole picture, and with the worker of each pixel. */
class LiveFileTest {
    @TempDir Path folder;

    private ByteBuffer computed(ComputeOptions options, View view, int[] counts)
            throws Failure, IOException {
        Path path = folder.resolve("picture");
        Cut cut = Cut.of(view, options.grain(), options.tileSize());
        try (LiveFile live = LiveFile.open(path);
                Workers workers = Workers.of(options)) {
            Owners owners = new Owners(cut);
            live.begin(counts, owners);
            workers.start();
            Handout handout = Handout.of(cut, options.sync(), options.threads()).notedBy(owners);
            workers.compute(handout, counts, WorkersTest.UNMARKED);
            live.end();
        }
        return ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void everyPixelHasItsCountAndItsWorker() throws Failure, IOException {
        View view = View.of(Location.builtIn(), 37, 29, 200);
        for (ComputeOptions.Kind kind :
                new ComputeOptions.Kind[] {ComputeOptions.Kind.PLATFORM, ComputeOptions.Kind.FORKJOIN}) {
            for (Cut.Grain grain : Cut.Grain.values()) {
                for (Handout.Sync sync : Handout.Sync.values()) {
                    ComputeOptions options =
                            new ComputeOptions(
                                    3, kind, 5, ComputeOptions.Create.START,
                                    ComputeOptions.AfterLoop.PARK, sync, grain, 5);
                    int[] counts = new int[37 * 29];
                    ByteBuffer seen = computed(options, view, counts);
                    assertEquals(6 * counts.length, seen.remaining());
                    for (int count : counts) {
                        assertEquals(count, seen.getInt());
                    }
                    while (seen.hasRemaining()) {
                        short worker = seen.getShort();
                        assertTrue(worker >= 1 && worker <= 3, options + ": " + worker);
                    }
                }
            }
        }
    }

    @Test
    void staticSharesOfLinesAreThoseOfTheHandOut() throws Failure, IOException {
        View view = View.of(Location.builtIn(), 4, 6, 50);
        ComputeOptions options =
                new ComputeOptions(
                        3, ComputeOptions.Kind.PLATFORM, 5, ComputeOptions.Create.START,
                        ComputeOptions.AfterLoop.PARK, Handout.Sync.NONE, Cut.Grain.LINE, 32);
        ByteBuffer seen = computed(options, view, new int[24]);
        seen.position(4 * 24);
        for (int y = 0; y < 6; y++) {
            for (int x = 0; x < 4; x++) {
                assertEquals(y % 3 + 1, seen.getShort());
            }
        }
    }

    @Test
    void whatCannotBeWrittenIsRefused() {
        Failure failure =
                assertThrows(Failure.class, () -> LiveFile.open(folder.resolve("no/picture")));
        assertTrue(failure.getMessage().contains("--live"), failure.getMessage());
    }
}
