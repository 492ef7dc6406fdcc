package concurve.mandelbrot;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The bookmark: which part of the plane is computed, and how deeply.
 *
 * <p>Lines of {@code key = number}, {@code #} comments and empty lines: the part of TOML that the
 * bookmark files of the native kernel use. Decision 24 says why no library reads them. It replaces
 * the {@code benchmark-location.xml} of document 002, §7.1.1.
 *
 * @param iterations greatest number of iterations of a pixel at each depth, unsigned
 */
record Location(
        double xMin,
        double xMax,
        double yMin,
        double yMax,
        int width,
        int height,
        Map<Depth, Integer> iterations) {

    /** Greatest width and height: a picture of four bytes a pixel must fit into memory. */
    static final int SIDE_MAX = 16_384;

    private static final long UNSIGNED_MAX = 0xFFFF_FFFFL;

    private static final List<String> KEYS =
            List.of(
                    "x_min",
                    "x_max",
                    "y_min",
                    "y_max",
                    "width",
                    "height",
                    "iterations_quick",
                    "iterations_normal",
                    "iterations_rigorous");

    /** Named iteration depths, each with its own figure in the bookmark file. */
    enum Depth {
        QUICK,
        NORMAL,
        RIGOROUS
    }

    /** What is wrong with a bookmark file, and where. */
    static final class FaultException extends Exception {
        private static final long serialVersionUID = 1L;

        FaultException(String message) {
            super(message);
        }
    }

    /** The built-in bookmark, from the jar. */
    static Location builtIn() {
        try (InputStream file = Location.class.getResourceAsStream("/benchmark-location.toml")) {
            return parse(new String(file.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException | FaultException error) {
            throw new IllegalStateException("the built-in location is tested", error);
        }
    }

    /** Reads a bookmark file. */
    static Location read(Path path) throws Failure {
        try {
            return parse(Files.readString(path));
        } catch (FaultException fault) {
            throw Failure.of("location file " + path + ": " + fault.getMessage());
        } catch (IOException error) {
            throw Failure.of(
                    "location file " + path + ": cannot be read: " + Failure.reason(error)
                            + "; name a readable file with --location, or leave the option out for"
                            + " the built-in one",
                    error);
        }
    }

    /** Reads the text of a bookmark file. */
    static Location parse(String text) throws FaultException {
        Pairs pairs = Pairs.of(text);
        double[] x = pairs.range("x_min", "x_max");
        double[] y = pairs.range("y_min", "y_max");
        return new Location(
                x[0],
                x[1],
                y[0],
                y[1],
                (int) pairs.integer("width", SIDE_MAX),
                (int) pairs.integer("height", SIDE_MAX),
                Map.of(
                        Depth.QUICK, (int) pairs.integer("iterations_quick", UNSIGNED_MAX),
                        Depth.NORMAL, (int) pairs.integer("iterations_normal", UNSIGNED_MAX),
                        Depth.RIGOROUS, (int) pairs.integer("iterations_rigorous", UNSIGNED_MAX)));
    }

    private record Pair(int line, String key, String value) {
        FaultException badValue(String wanted) {
            return new FaultException(
                    "line " + line + ", key `" + key + "`: `" + value + "` is not " + wanted);
        }
    }

    private record Pairs(Map<String, Pair> byKey) {

        static Pairs of(String text) throws FaultException {
            Map<String, Pair> pairs = new LinkedHashMap<>();
            int number = 0;
            for (String full : text.split("\\R", -1)) {
                number++;
                String line = full.strip();
                if (line.isEmpty() || line.startsWith("#")) {
                    continue;
                }
                Pair pair = pair(number, line);
                if (!KEYS.contains(pair.key)) {
                    throw new FaultException(
                            "line " + number + ": unknown key `" + pair.key + "`; known are "
                                    + String.join(", ", KEYS));
                }
                if (pairs.put(pair.key, pair) != null) {
                    throw new FaultException(
                            "line " + number + ": key `" + pair.key
                                    + "` stands twice; keep one of the two");
                }
            }
            return new Pairs(pairs);
        }

        private static Pair pair(int number, String line) throws FaultException {
            int equals = line.indexOf('=');
            if (equals < 0) {
                throw new FaultException(
                        "line " + number + ": `" + line
                                + "` is not `key = value`; comments start with #");
            }
            return new Pair(
                    number, line.substring(0, equals).strip(), line.substring(equals + 1).strip());
        }

        Pair get(String key) throws FaultException {
            Pair pair = byKey.get(key);
            if (pair == null) {
                throw new FaultException(
                        "key `" + key + "` is missing; add a line `" + key + " = …`");
            }
            return pair;
        }

        double[] range(String min, String max) throws FaultException {
            double low = coordinate(min);
            double high = coordinate(max);
            if (low < high) {
                return new double[] {low, high};
            }
            throw new FaultException(
                    "line " + get(max).line + ", key `" + max + "`: must be greater than `" + min
                            + "`");
        }

        private double coordinate(String key) throws FaultException {
            Pair pair = get(key);
            String wanted = "a finite number such as -0.75";
            // Java alone would also read 1.0f, 0x1p3 and NaN.
            if (!pair.value.matches("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?")) {
                throw pair.badValue(wanted);
            }
            double number = Double.parseDouble(pair.value);
            if (Double.isInfinite(number)) {
                throw pair.badValue(wanted);
            }
            return number;
        }

        long integer(String key, long max) throws FaultException {
            Pair pair = get(key);
            String wanted = "a whole number from 1 to " + max;
            if (!pair.value.matches("\\+?\\d{1,18}")) {
                throw pair.badValue(wanted);
            }
            long number = Long.parseLong(pair.value);
            if (number < 1 || number > max) {
                throw pair.badValue(wanted);
            }
            return number;
        }
    }
}
