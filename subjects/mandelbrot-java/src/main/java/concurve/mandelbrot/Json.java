package concurve.mandelbrot;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The little JSON that a report needs: texts, numbers, booleans, lists of them. */
final class Json {
    private Json() {}

    /** An object with its members in order. */
    static String object(Map<String, ?> members) {
        return members.entrySet().stream()
                .map(member -> text(member.getKey()) + ":" + value(member.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
    }

    private static String value(Object value) {
        if (value instanceof List<?> list) {
            return list.stream().map(Json::value).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Number || value instanceof Boolean) {
            return value.toString();
        }
        return text(value.toString());
    }

    private static String text(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
