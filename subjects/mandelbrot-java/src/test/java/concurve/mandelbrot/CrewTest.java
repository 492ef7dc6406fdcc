package concurve.mandelbrot;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.junit.jupiter.api.Test;

/** Every setting gives the same picture. */
class CrewTest {
    private static final Duration LONG = Duration.ofMinutes(2);

    private static View view(int width, int height, int iterations) {
        return View.of(Location.builtIn(), width, height, iterations);
    }

    private static List<Setting> settings(Setting.Kind kind) {
        List<Setting> settings = new ArrayList<>();
        for (Handout.Sync sync : Handout.Sync.values()) {
            for (Cut.Grain grain : Cut.Grain.values()) {
                for (Setting.Create create : Setting.Create.values()) {
                    for (Setting.AfterLoop after : Setting.AfterLoop.values()) {
                        for (int threads : new int[] {1, 2, 40}) {
                            settings.add(
                                    new Setting(threads, kind, 5, create, after, sync, grain, 8));
                        }
                    }
                }
            }
        }
        return settings;
    }

    private static List<Computation> compute(View view, Setting setting, int[] counts)
            throws Failure {
        List<Computation> computations = new ArrayList<>();
        Cut cut = Cut.of(view, setting.grain(), setting.tileSize());
        try (Crew crew = Crew.of(setting)) {
            crew.hire();
            for (int i = 0; i < 2; i++) {
                Handout handout = Handout.of(cut, setting.sync(), setting.threads());
                computations.add(crew.compute(handout, counts, beginNs -> {}));
            }
        }
        return computations;
    }

    private static void everySettingGivesTheSamePicture(Setting.Kind kind) {
        View view = view(53, 37, 300);
        int[] expected = new int[53 * 37];
        long sum = Kernel.compute(view, 0, 0, 53, 37, expected);
        for (Setting setting : settings(kind)) {
            if (kind == Setting.Kind.VIRTUAL && setting.afterLoop() == Setting.AfterLoop.SPIN) {
                continue;
            }
            int[] counts = new int[expected.length];
            List<Computation> computations =
                    assertTimeoutPreemptively(
                            LONG, () -> compute(view, setting, counts), setting::toString);
            for (Computation computation : computations) {
                assertEquals(sum, computation.pixelSum(), setting::toString);
                assertEquals(view.pixels(), computation.pixels(), setting::toString);
            }
            assertArrayEquals(expected, counts, setting::toString);
        }
    }

    @Test
    void platform() {
        everySettingGivesTheSamePicture(Setting.Kind.PLATFORM);
    }

    @Test
    void forkJoin() {
        everySettingGivesTheSamePicture(Setting.Kind.FORKJOIN);
    }

    @Test
    void parallelStream() {
        everySettingGivesTheSamePicture(Setting.Kind.PARALLEL_STREAM);
    }

    @Test
    void virtual() throws Failure {
        if (Runtime.version().feature() >= 21) {
            everySettingGivesTheSamePicture(Setting.Kind.VIRTUAL);
            return;
        }
        Setting setting = settings(Setting.Kind.VIRTUAL).get(0);
        try {
            Crew.of(setting);
        } catch (Failure failure) {
            assertTrue(failure.getMessage().contains("need Java 21"), failure.getMessage());
            return;
        }
        throw new AssertionError("not refused");
    }

    @Test
    void fullPictureHasThePinnedSum() throws Failure, IOException {
        Properties pinned = new Properties();
        try (InputStream file = CrewTest.class.getResourceAsStream("/benchmark-sums.toml")) {
            pinned.load(file);
        }
        View view = view(1016, 718, 1000);
        Setting setting =
                new Setting(
                        2,
                        Setting.Kind.PLATFORM,
                        5,
                        Setting.Create.START,
                        Setting.AfterLoop.PARK,
                        Handout.Sync.CAS,
                        Cut.Grain.LINE,
                        32);
        long sum = compute(view, setting, new int[1016 * 718]).get(0).pixelSum();
        assertEquals(Long.parseLong(pinned.getProperty("sum_1000")), sum);
    }

    @Test
    void workersAreAccountedFor() throws Failure {
        Setting setting =
                new Setting(
                        3,
                        Setting.Kind.PLATFORM,
                        4,
                        Setting.Create.RUN,
                        Setting.AfterLoop.PARK,
                        Handout.Sync.NONE,
                        Cut.Grain.LINE,
                        32);
        Computation computation = compute(view(20, 6, 50), setting, new int[120]).get(1);
        assertEquals(
                List.of("Thread-1", "Thread-2", "Thread-3"),
                computation.workers().stream().map(WorkerResult::name).sorted().toList());
        long last = computation.beginNs();
        for (WorkerResult worker : computation.workers()) {
            assertEquals(40, worker.pixels());
            assertEquals(4, worker.priority());
            assertTrue(worker.beginNs() >= computation.beginNs());
            assertTrue(worker.endNs() >= last && worker.endNs() <= computation.endNs());
            last = worker.endNs();
        }
    }
}
