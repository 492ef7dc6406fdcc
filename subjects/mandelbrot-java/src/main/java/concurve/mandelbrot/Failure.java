package concurve.mandelbrot;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** What failed, where, and what to try: the one error of this program, with its exit code. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    /** Exit code of anything but wrong usage. */
    static final int FAILED = 1;

    /** Exit code of wrong usage. */
    static final int USAGE = 2;

    private final int exitCode;

    private Failure(int exitCode, String message, Throwable cause) {
        super(message, cause);
        this.exitCode = exitCode;
    }

    static Failure of(String message) {
        return new Failure(FAILED, message, null);
    }

    static Failure of(String message, Throwable cause) {
        return new Failure(FAILED, message, cause);
    }

    static Failure usage(String message) {
        return new Failure(USAGE, message, null);
    }

    int exitCode() {
        return exitCode;
    }

    /** Why a file could not be used: Java's own messages are often the bare path. */
    static String reason(IOException error) {
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
