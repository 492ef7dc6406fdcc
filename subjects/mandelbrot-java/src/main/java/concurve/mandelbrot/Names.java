package concurve.mandelbrot;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/** The names of enum values on the command line and in reports: {@code parallel-stream}. */
final class Names {
    private Names() {}

    static String of(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static <E extends Enum<E>> Optional<E> find(Class<E> type, String name) {
        return Arrays.stream(type.getEnumConstants())
                .filter(value -> of(value).equals(name))
                .findFirst();
    }

    static String all(Class<? extends Enum<?>> type) {
        return Arrays.stream(type.getEnumConstants()).map(Names::of).collect(Collectors.joining(", "));
    }
}
