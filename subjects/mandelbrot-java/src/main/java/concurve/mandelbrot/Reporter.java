package concurve.mandelbrot;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes lines to the report channel, whose descriptor {@code CONCURVE_REPORT} names; silent where no
 * channel was given. Each line goes out in a single write.
 */
final class Reporter {
    static final String VARIABLE = "CONCURVE_REPORT";

    private final OutputStream channel;

    private Reporter(OutputStream channel) {
        this.channel = channel;
    }

    /** The channel that {@code value} names, the variable's value or null. */
    static Reporter of(String value) throws Failure {
        if (value == null) {
            return new Reporter(null);
        }
        if (!value.matches("\\d{1,9}")) {
            throw Failure.of(
                    VARIABLE + "=\"" + value + "\" is not the number of a descriptor: unset it, or"
                            + " run the program under concurve");
        }
        // The pipe is opened anew through /proc: with a wrong number that is an error.
        Path path = Path.of("/proc/self/fd/" + value);
        try {
            return new Reporter(
                    Files.newOutputStream(
                            path, StandardOpenOption.WRITE, StandardOpenOption.APPEND));
        } catch (IOException error) {
            throw Failure.of(
                    "cannot open the report channel " + path + " (from " + VARIABLE + "): "
                            + Failure.reason(error)
                            + "; unset the variable, or leave the descriptor open for writing",
                    error);
        }
    }

    /** A reporter that writes to {@code channel}. */
    static Reporter to(OutputStream channel) {
        return new Reporter(channel);
    }

    /** Whether there is a channel; lets a program skip what is costly to prepare. */
    boolean isConnected() {
        return channel != null;
    }

    /** Reports that the program is ready. */
    void ready() throws Failure {
        line(Map.of("ready", true));
    }

    void begin(String phase, long atNs) throws Failure {
        edge(phase, "begin", atNs);
    }

    void end(String phase, long atNs) throws Failure {
        edge(phase, "end", atNs);
    }

    private void edge(String phase, String edge, long atNs) throws Failure {
        line(members("phase", phase, "edge", edge, "at_ns", atNs));
    }

    /** A fact about the program that is no indicator. */
    void fact(String name, Object value) throws Failure {
        line(members("fact", name, "value", value));
    }

    /** A figure of the whole program. */
    void count(String name, double value) throws Failure {
        line(members("indicator", name, "value", value));
    }

    /** A time of the whole program, in seconds. */
    void seconds(String name, double value) throws Failure {
        line(members("indicator", name, "value", value, "unit", "s"));
    }

    void workerCount(String name, double value, String worker) throws Failure {
        line(members("indicator", name, "value", value, "worker", worker));
    }

    void workerSeconds(String name, double value, String worker) throws Failure {
        line(members("indicator", name, "value", value, "unit", "s", "worker", worker));
    }

    private static Map<String, Object> members(Object... pairs) {
        Map<String, Object> members = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            members.put((String) pairs[i], pairs[i + 1]);
        }
        return members;
    }

    private void line(Map<String, ?> members) throws Failure {
        if (channel == null) {
            return;
        }
        try {
            channel.write((Json.object(members) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw Failure.of("cannot write to the report channel: " + Failure.reason(error), error);
        }
    }
}
