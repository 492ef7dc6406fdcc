package concurve.mandelbrot;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** The words of file errors: Java's own messages are often the bare path. */
final class Errors {
    private Errors() {}

    static String text(IOException error) {
        if (error instanceof NoSuchFileException) {
            return "no such file or folder";
        }
        if (error instanceof AccessDeniedException) {
            return "permission denied";
        }
        if (error instanceof FileSystemException file && file.getReason() != null) {
            return file.getReason();
        }
        return error.getMessage() == null ? error.toString() : error.getMessage();
    }
}
