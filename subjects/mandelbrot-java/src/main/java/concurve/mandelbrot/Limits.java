package concurve.mandelbrot;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Stream;

/** Which limit prevents the creation of threads, for the error message. */
final class Limits {
    /** Memory mappings of one platform thread: its stack and the guard pages. Seen in /proc/PID/maps. */
    private static final long MAPS_PER_THREAD = 2;

    /** Mappings that the JVM itself may need: it aborts if it gets none. */
    private static final long MAPS_SPARE = 4000;

    /** Heap of one waiting virtual thread, its stack included. */
    private static final long HEAP_BYTES_PER_VIRTUAL = 1024;

    private Limits() {}

    private record Limit(String name, long max, long used) {
        long left() {
            return Math.max(0, max - used);
        }

        @Override
        public String toString() {
            return name + " = " + max + " (" + used + " in use)";
        }
    }

    /** A failure to create a thread, with the limit that has just refused it. */
    static Failure refused(long requested, long created, Throwable cause) {
        String text = String.valueOf(cause.getMessage());
        if (text.contains("heap")) {
            return failure(requested, created, text, heap());
        }
        return failure(requested, created, text, exhaustedLimit());
    }

    private static Failure failure(long requested, long created, String cause, String limit) {
        return Failure.of(
                "threads: " + created + " of " + requested + " could be created, then: " + cause
                        + "; the limit that bit: " + limit
                        + "; ask for fewer with --threads, or raise that limit");
    }

    /**
     * Refuses a number of platform threads that would run out of memory mappings: the JVM aborts
     * where a mapping is refused to itself, so it is checked before.
     */
    static void checkMemoryMaps(long threads) throws Failure {
        OptionalLong maps = number(Path.of("/proc/sys/vm/max_map_count"));
        if (maps.isEmpty()
                || threads <= Math.max(0, maps.getAsLong() - MAPS_SPARE) / MAPS_PER_THREAD) {
            return;
        }
        throw failure(
                threads,
                0,
                "out of memory mappings",
                "vm.max_map_count = " + maps.getAsLong() + " (" + MAPS_PER_THREAD
                        + " mappings a thread, " + MAPS_SPARE + " for the JVM)");
    }

    /** Refuses a number of virtual threads that the heap cannot hold. */
    static void checkHeap(long threads) throws Failure {
        if (threads > Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_VIRTUAL) {
            throw failure(threads, 0, "not enough heap", heap());
        }
    }

    private static String heap() {
        return "the heap of " + Runtime.getRuntime().maxMemory() + " bytes (-Xmx)";
    }

    /** The limit with the least capacity left. */
    private static String exhaustedLimit() {
        return Stream.of(pidsCgroup(), userProcesses(), systemThreads(), pidMax())
                .filter(Objects::nonNull)
                .min(Comparator.comparingLong(Limit::left))
                .map(Limit::toString)
                .orElse("unknown (no limit could be read); see pthread_create(3)");
    }

    /** The pids controller of cgroup v1 or v2: the nearest limit on the way to the root. */
    private static Limit pidsCgroup() {
        return pidsDirectories(ProcFile.text(Path.of("/proc/self/cgroup"))).stream()
                .map(Limits::pidsLimit)
                .filter(Objects::nonNull)
                .min(Comparator.comparingLong(Limit::left))
                .orElse(null);
    }

    private static Limit pidsLimit(Path directory) {
        OptionalLong max = number(directory.resolve("pids.max"));
        OptionalLong used = number(directory.resolve("pids.current"));
        if (max.isEmpty() || used.isEmpty()) {
            return null;
        }
        return new Limit("pids.max of " + directory, max.getAsLong(), used.getAsLong());
    }

    /** The directories whose {@code pids.max} binds a process with this {@code /proc/PID/cgroup}. */
    static List<Path> pidsDirectories(String membership) {
        List<Path> directories = new ArrayList<>();
        for (String line : membership.lines().toList()) {
            String[] fields = line.split(":", 3);
            if (fields.length < 3) {
                continue;
            }
            boolean pids = List.of(fields[1].split(",")).contains("pids");
            if (!fields[1].isEmpty() && !pids) {
                continue;
            }
            Path root = Path.of(pids ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup");
            Path leaf = root.resolve(fields[2].replaceFirst("^/+", ""));
            for (Path at = leaf; at != null && at.startsWith(root); at = at.getParent()) {
                directories.add(at);
            }
        }
        return directories;
    }

    private static Limit userProcesses() {
        return ProcFile.text(Path.of("/proc/self/limits"))
                .lines()
                .filter(line -> line.startsWith("Max processes"))
                .map(line -> line.split("\\s+")[2])
                .filter(soft -> soft.matches("\\d+"))
                .map(soft -> limit("ulimit -u (RLIMIT_NPROC)", OptionalLong.of(Long.parseLong(soft))))
                .findFirst()
                .orElse(null);
    }

    private static Limit systemThreads() {
        return limit("kernel.threads-max", number(Path.of("/proc/sys/kernel/threads-max")));
    }

    private static Limit pidMax() {
        return limit("kernel.pid_max", number(Path.of("/proc/sys/kernel/pid_max")));
    }

    private static Limit limit(String name, OptionalLong max) {
        OptionalLong used = threadsRunning();
        return max.isEmpty() || used.isEmpty()
                ? null
                : new Limit(name, max.getAsLong(), used.getAsLong());
    }

    /** Threads of the whole machine: the 457 of {@code 0.52 0.58 0.59 3/457 11837}. */
    private static OptionalLong threadsRunning() {
        String[] fields = ProcFile.text(Path.of("/proc/loadavg")).split("[ /]");
        return fields.length < 5 ? OptionalLong.empty() : parse(fields[4]);
    }

    private static OptionalLong number(Path path) {
        return parse(ProcFile.text(path).strip());
    }

    private static OptionalLong parse(String text) {
        return text.matches("\\d{1,18}")
                ? OptionalLong.of(Long.parseLong(text))
                : OptionalLong.empty();
    }
}
