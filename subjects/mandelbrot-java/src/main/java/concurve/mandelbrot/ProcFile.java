package concurve.mandelbrot;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Files of {@code /proc} and {@code /sys}. */
final class ProcFile {
    private static final int BYTES_MAX = 1 << 20;

    private ProcFile() {}

    /**
     * The text of a file, or an empty one where it cannot be read.
     *
     * <p>Not {@code Files.readString}: it begins with a single byte where the size is shown as 0, and
     * a file of {@code /proc/sys} has its end after whatever was read first.
     */
    static String text(Path path) {
        try (InputStream file = Files.newInputStream(path)) {
            return new String(file.readNBytes(BYTES_MAX), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            return "";
        }
    }
}
