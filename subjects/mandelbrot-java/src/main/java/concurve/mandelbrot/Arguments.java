package concurve.mandelbrot;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** A command line taken apart: options with a value, and flags. Refusals are those of wrong usage. */
final class Arguments {
    private final Map<String, String> values;

    private Arguments(Map<String, String> values) {
        this.values = values;
    }

    /**
     * Takes {@code --name value} and {@code --name=value} apart.
     *
     * @param valued options that take a value
     * @param flags options that take none
     */
    static Arguments parse(String[] line, Set<String> valued, Set<String> flags) throws Failure {
        Map<String, String> values = new HashMap<>();
        for (int i = 0; i < line.length; i++) {
            int equals = line[i].startsWith("--") ? line[i].indexOf('=') : -1;
            String name = equals < 0 ? line[i] : line[i].substring(0, equals);
            String value;
            if (flags.contains(name)) {
                if (equals >= 0) {
                    throw usage("option '" + name + "' takes no value");
                }
                value = "";
            } else if (valued.contains(name)) {
                if (equals < 0 && i + 1 == line.length) {
                    throw usage("a value is required for '" + name + "' but none was supplied");
                }
                value = equals < 0 ? line[++i] : line[i].substring(equals + 1);
            } else {
                throw usage("unexpected argument '" + line[i] + "' found");
            }
            if (values.put(name, value) != null) {
                throw usage("the argument '" + name + "' cannot be used multiple times");
            }
        }
        return new Arguments(values);
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    Optional<String> text(String name) {
        return Optional.ofNullable(values.get(name));
    }

    /** A whole number, or empty if the option was not given. */
    Optional<Long> number(String name, long min, long max) throws Failure {
        Optional<String> text = text(name);
        if (text.isEmpty()) {
            return Optional.empty();
        }
        if (!text.get().matches("\\+?\\d{1,18}")) {
            throw invalid(name, text.get(), "not a whole number from " + min + " to " + max);
        }
        long number = Long.parseLong(text.get());
        if (number < min || number > max) {
            throw invalid(name, text.get(), text.get() + " is not in " + min + "..=" + max);
        }
        return Optional.of(number);
    }

    /** One of the values of an enum, or {@code normal} if the option was not given. */
    <E extends Enum<E>> E choice(String name, Class<E> type, E normal) throws Failure {
        Optional<String> text = text(name);
        if (text.isEmpty()) {
            return normal;
        }
        Optional<E> found = Names.find(type, text.get());
        if (found.isEmpty()) {
            throw invalid(name, text.get(), "possible values: " + Names.all(type));
        }
        return found.get();
    }

    static Failure invalid(String name, String value, String why) {
        return usage("invalid value '" + value + "' for '" + name + "': " + why);
    }

    static Failure usage(String message) {
        // In one line: concurve quotes the last line of a program that failed.
        return Failure.usage("error: " + message + "; --help lists all options");
    }

    /** Checks that two options are not given together; they are names of one thing. */
    void excludes(List<String> names) throws Failure {
        if (names.stream().filter(this::has).count() > 1) {
            throw usage("the argument '" + names.get(0) + "' cannot be used with '" + names.get(1) + "'");
        }
    }
}
