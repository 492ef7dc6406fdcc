package concurve.mandelbrot;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The kernel's threads of this process, distinguished by their names.
 *
 * @param workers those that carry a worker's name: one each for platform threads
 * @param carriers those that run virtual threads
 */
record KernelThreads(int total, int workers, int carriers) {

    /** Those of the JVM itself and of the main thread. */
    int service() {
        return total - workers - carriers;
    }

    /** Counts them; empty where {@code /proc} does not show them. */
    static Optional<KernelThreads> count(boolean virtual) {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            return Optional.of(of(tasks.map(KernelThreads::name).toList(), virtual));
        } catch (IOException | UncheckedIOException unreadable) {
            return Optional.empty();
        }
    }

    static KernelThreads of(List<String> names, boolean virtual) {
        long workers = names.stream().filter(name -> name.matches("Thread-\\d+")).count();
        // Names are cut to 15 characters: ForkJoinPool-1-worker-2.
        long carriers =
                virtual ? names.stream().filter(name -> name.startsWith("ForkJoinPool-")).count() : 0;
        return new KernelThreads(names.size(), (int) workers, (int) carriers);
    }

    private static String name(Path task) {
        return ProcFile.text(task.resolve("comm")).strip();
    }
}
