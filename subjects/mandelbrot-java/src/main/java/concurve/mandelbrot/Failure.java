package concurve.mandelbrot;

/** What failed, where, and what to try: the one error of this program, with its exit code. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    /** Exit code of anything but wrong usage. */
    static final int FAILED = 1;

    /** Exit code of a command line that cannot be meant. */
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
}
