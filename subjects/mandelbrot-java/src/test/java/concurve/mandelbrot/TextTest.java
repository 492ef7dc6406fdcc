package concurve.mandelbrot;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is read and what is written: options, bookmarks, listing, JSON, limits. */
class TextTest {
    private static String refusal(String... line) {
        Failure failure = assertThrows(Failure.class, () -> Options.parse(line));
        assertEquals(Failure.USAGE, failure.exitCode(), failure.getMessage());
        return failure.getMessage();
    }

    @Test
    void wrongUsageIsRefused() {
        assertTrue(refusal("--priority", "11").contains("11 is not in 1..=10"));
        assertTrue(refusal("--priority", "0").contains("--priority"));
        assertTrue(refusal("--kind", "green").contains("parallel-stream"));
        assertTrue(refusal("--sync", "lock").contains("none, method, object, cas"));
        assertTrue(refusal("--grain=row").contains("tile"));
        assertTrue(refusal("--depth", "deep").contains("rigorous"));
        assertTrue(refusal("--computations", "0").contains("--computations"));
        assertTrue(refusal("--repeat", "1", "--computations", "1").contains("--repeat"));
        assertTrue(refusal("--threads").contains("--threads"));
        assertTrue(refusal("--threads", "1", "--threads", "2").contains("multiple"));
        assertTrue(refusal("--colour").contains("--colour"));
        assertTrue(refusal("--simd").contains("native"));
        assertTrue(refusal("--kind", "virtual", "--priority", "6").contains("always"));
        assertTrue(refusal("--kind", "virtual", "--after-loop", "spin").contains("carrier"));
    }

    @Test
    void optionsMayBeJoinedWithTheirValues() throws Failure {
        Options options = Options.parse(new String[] {"--threads=3", "--iterations", "4294967295"});
        assertEquals(3, options.computeOptions().threads());
        assertEquals(-1, options.view().iterations());
    }

    @Test
    void builtInLocationHasTheSizeOfTheDocument() {
        Location location = Location.builtIn();
        assertEquals(1016, location.width());
        assertEquals(718, location.height());
        assertEquals(2500, location.iterations().get(Location.Depth.QUICK));
    }

    private static String fault(String text) {
        return assertThrows(Location.FaultException.class, () -> Location.parse(text)).getMessage();
    }

    @Test
    void aFaultNamesLineKeyAndRemedy() {
        assertTrue(fault("colour = 3").contains("line 1: unknown key `colour`"));
        assertTrue(fault("width = 3\n\nwidth = 3").contains("line 3: key `width` stands twice"));
        assertTrue(fault("").contains("`x_min` is missing"));
        assertTrue(fault("# x\nwidth").contains("line 2"));
        assertTrue(fault("x_min = 0\nx_max = wide").contains("line 2, key `x_max`: `wide` is not"));
        assertTrue(fault("x_min = 0x1p3\nx_max = 9").contains("a finite number"));
        assertTrue(fault("x_min = 1\nx_max = 1").contains("greater than `x_min`"));
    }

    @Test
    void theListingHasTheLinesOfTheDocument() {
        List<WorkerResult> workers =
                List.of(
                        new WorkerResult("Thread-2", 5, 364_744, 1, 0, 1),
                        new WorkerResult("Thread-1", 5, 364_744, 1, 0, 2));
        Computation computation =
                new Computation(1_000_000_000L, 5_930_000_000L, workers, 729_488, 2);
        View view = View.of(Location.builtIn(), 1016, 718, 10);
        assertEquals(
                ". . . . .\nCalculating...\nX: 1 to 1016\nY: 1 to 718\n"
                        + "Thread Thread-2 done (Priority 5)\nThread Thread-1 done (Priority 5)\n"
                        + "Run time: 4930ms\nNumber of pixels rendered: 729488\n",
                Output.listing(view, computation));
    }

    @Test
    void jsonIsQuoted() {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("a\"b\\", List.of("x\n", 1, 2.5, true));
        assertEquals("{\"a\\\"b\\\\\":[\"x\\u000a\",1,2.5,true]}", Json.object(members));
    }

    @Test
    void pidsLimitsAreSoughtUpToTheRoot() {
        assertEquals(
                List.of(
                        Path.of("/sys/fs/cgroup/pids/a/b"),
                        Path.of("/sys/fs/cgroup/pids/a"),
                        Path.of("/sys/fs/cgroup/pids")),
                Limits.pidsDirectories("5:cpu,cpuacct:/x\n8:pids:/a/b\n"));
        assertEquals(
                List.of(Path.of("/sys/fs/cgroup/user"), Path.of("/sys/fs/cgroup")),
                Limits.pidsDirectories("0::/user\n"));
    }

    @Test
    void tooManyAreRefusedBeforeAnythingIsCreated() {
        Failure maps = assertThrows(Failure.class, () -> Limits.checkMemoryMaps(1L << 40));
        assertTrue(maps.getMessage().contains("vm.max_map_count"), maps.getMessage());
        Failure heap = assertThrows(Failure.class, () -> Limits.checkHeap(1L << 40));
        assertTrue(heap.getMessage().contains("-Xmx"), heap.getMessage());
    }

    @Test
    void kernelThreadsAreToldApartByName() {
        KernelThreads threads =
                KernelThreads.of(List.of("java", "G1 Conc#0", "Thread-1", "Thread-12"), false);
        assertEquals(new KernelThreads(4, 2, 0), threads);
        assertEquals(2, threads.service());
        assertEquals(
                new KernelThreads(2, 0, 1),
                KernelThreads.of(List.of("java", "ForkJoinPool-1-"), true));
    }

    @Test
    void collectorsHaveTheirUsualNames() {
        assertEquals("G1", Jvm.collector(List.of("G1 Young Generation", "G1 Old Generation")));
        assertEquals("Serial", Jvm.collector(List.of("Copy", "MarkSweepCompact")));
        assertEquals("Parallel", Jvm.collector(List.of("PS MarkSweep", "PS Scavenge")));
        assertEquals("ZGC", Jvm.collector(List.of("ZGC Minor Cycles")));
        assertEquals("odd", Jvm.collector(List.of("odd")));
    }
}
