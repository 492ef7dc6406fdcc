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

/** All options give the same picture. */
class WorkersTest {
    private static final Duration LONG = Duration.ofMinutes(2);
    private static final int MANY = 9;

    /** For a computation whose edges nobody wants to know. */
    static final Workers.Edges UNMARKED =
            new Workers.Edges() {
                @Override
                public void begin(long beginNs) {}

                @Override
                public void end(long endNs) {}
            };

    private static View view(int width, int height, int iterations) {
        return View.of(Location.builtIn(), width, height, iterations);
    }

    private static List<ComputeOptions> allOptions(ComputeOptions.Kind kind) {
        List<ComputeOptions> allOptions = new ArrayList<>();
        for (Handout.Sync sync : Handout.Sync.values()) {
            for (Cut.Grain grain : Cut.Grain.values()) {
                for (ComputeOptions.Create create : ComputeOptions.Create.values()) {
                    for (ComputeOptions.AfterLoop after : ComputeOptions.AfterLoop.values()) {
                        for (int threads : new int[] {1, 2, MANY}) {
                            allOptions.add(
                                    new ComputeOptions(threads, kind, 5, create, after, sync, grain, 8));
                        }
                    }
                }
            }
        }
        return allOptions;
    }

    private static List<Computation> compute(View view, ComputeOptions options, int[] counts)
            throws Failure {
        List<Computation> computations = new ArrayList<>();
        Cut cut = Cut.of(view, options.grain(), options.tileSize());
        try (Workers workers = Workers.of(options)) {
            workers.start();
            for (int i = 0; i < 2; i++) {
                Handout handout = Handout.of(cut, options.sync(), options.threads());
                computations.add(workers.compute(handout, counts, UNMARKED));
            }
        }
        return computations;
    }

    private static void allOptionsGiveTheSameImage(ComputeOptions.Kind kind) {
        for (ComputeOptions options : allOptions(kind)) {
            if (kind == ComputeOptions.Kind.VIRTUAL && options.afterLoop() == ComputeOptions.AfterLoop.SPIN) {
                continue;
            }
            // More threads than the picture has lines or tiles; not many, since those that spin keep
            // the CPUs busy for a turn of each.
            boolean isFull = options.threads() < MANY;
            View view = isFull ? view(53, 37, 300) : view(23, 7, 300);
            int[] expected = new int[view.width() * view.height()];
            long sum = Kernel.compute(view, 0, 0, view.width(), view.height(), expected);
            int[] counts = new int[expected.length];
            List<Computation> computations =
                    assertTimeoutPreemptively(
                            LONG, () -> compute(view, options, counts), options::toString);
            for (Computation computation : computations) {
                assertEquals(sum, computation.pixelSum(), options::toString);
                assertEquals(view.pixels(), computation.pixels(), options::toString);
            }
            assertArrayEquals(expected, counts, options::toString);
        }
    }

    @Test
    void platform() {
        allOptionsGiveTheSameImage(ComputeOptions.Kind.PLATFORM);
    }

    @Test
    void forkJoin() {
        allOptionsGiveTheSameImage(ComputeOptions.Kind.FORKJOIN);
    }

    @Test
    void parallelStream() {
        allOptionsGiveTheSameImage(ComputeOptions.Kind.PARALLEL_STREAM);
    }

    @Test
    void virtual() throws Failure {
        if (Runtime.version().feature() >= 21) {
            allOptionsGiveTheSameImage(ComputeOptions.Kind.VIRTUAL);
            return;
        }
        ComputeOptions options = allOptions(ComputeOptions.Kind.VIRTUAL).get(0);
        try {
            Workers.of(options);
        } catch (Failure failure) {
            assertTrue(failure.getMessage().contains("need Java 21"), failure.getMessage());
            return;
        }
        throw new AssertionError("not refused");
    }

    @Test
    void fullPictureHasThePinnedSum() throws Failure, IOException {
        Properties pinned = new Properties();
        try (InputStream file = WorkersTest.class.getResourceAsStream("/benchmark-sums.toml")) {
            pinned.load(file);
        }
        View view = view(1016, 718, 1000);
        ComputeOptions options =
                new ComputeOptions(
                        2,
                        ComputeOptions.Kind.PLATFORM,
                        5,
                        ComputeOptions.Create.START,
                        ComputeOptions.AfterLoop.PARK,
                        Handout.Sync.CAS,
                        Cut.Grain.LINE,
                        32);
        long sum = compute(view, options, new int[1016 * 718]).get(0).pixelSum();
        assertEquals(Long.parseLong(pinned.getProperty("sum_1000")), sum);
    }

    @Test
    void workersAreAccountedFor() throws Failure {
        ComputeOptions options =
                new ComputeOptions(
                        3,
                        ComputeOptions.Kind.PLATFORM,
                        4,
                        ComputeOptions.Create.RUN,
                        ComputeOptions.AfterLoop.PARK,
                        Handout.Sync.NONE,
                        Cut.Grain.LINE,
                        32);
        Computation computation = compute(view(20, 6, 50), options, new int[120]).get(1);
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
