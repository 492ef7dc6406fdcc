package concurve.mandelbrot;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The picture in a file while it is computed, for a program that shows it: the iteration counts of all
 * pixels, line by line, as 32-bit numbers in little-endian order, 0 where a pixel is not computed yet;
 * then the workers that compute them, as 16-bit numbers ({@link Owners}).
 *
 * <p>A thread of its own copies them now and then: the workers do nothing for it.
 */
final class LiveFile implements AutoCloseable {
    /**
     * The picture is copied so often, and after so many times the time that a copy took, which the workers
     * may lack, but not later: a copy may have waited for a CPU. The first copies come sooner, so that it is seen at once.
     */
    private static final long INTERVAL_MS = 200;

    private static final long INTERVAL_MAX_MS = 2000;
    private static final long TIMES_A_COPY = 250;

    private static final long FIRST_INTERVAL_MS = 50;
    private static final int FIRST_COPIES = 4;

    private final Path path;
    private final FileChannel file;
    private final CountDownLatch ended = new CountDownLatch(1);
    private ByteBuffer bytes;
    private int[] counts;
    private Owners owners;
    private Thread copying;

    private LiveFile(Path path, FileChannel file) {
        this.path = path;
        this.file = file;
    }

    /** Opens the file, empty. */
    static LiveFile open(Path path) throws Failure {
        try {
            return new LiveFile(
                    path,
                    FileChannel.open(
                            path,
                            StandardOpenOption.CREATE,
                            StandardOpenOption.WRITE,
                            StandardOpenOption.TRUNCATE_EXISTING));
        } catch (IOException error) {
            throw failure(path, error);
        }
    }

    /** Keeps the file up to date from now on. */
    void begin(int[] counts, Owners owners) throws Failure {
        this.counts = counts;
        this.owners = owners;
        try {
            bytes = ByteBuffer.allocateDirect(Math.multiplyExact(6, counts.length));
        } catch (ArithmeticException | OutOfMemoryError refused) {
            throw Failure.of(
                    "live picture: " + counts.length + " pixels need 6 bytes each outside the heap;"
                            + " a smaller --width and --height, or no --live",
                    refused);
        }
        bytes.order(ByteOrder.LITTLE_ENDIAN);
        copying = new Thread(null, this::copyUntilEnded, "live");
        copying.setDaemon(true);
        copying.start();
    }

    /** A copy that fails is no reason to stop the computation: the last one tells. */
    private void copyUntilEnded() {
        long interval = FIRST_INTERVAL_MS;
        for (int copies = 1; !waited(interval); copies++) {
            long begun = System.nanoTime();
            try {
                copy();
            } catch (IOException toldByTheLastOne) {
                // The next copy tries again.
            }
            if (copies >= FIRST_COPIES) {
                long took = TimeUnit.NANOSECONDS.toMillis(TIMES_A_COPY * (System.nanoTime() - begun));
                interval = Math.min(Math.max(INTERVAL_MS, took), INTERVAL_MAX_MS);
            }
        }
    }

    /** Waits, or returns true if the picture is complete. */
    private boolean waited(long milliseconds) {
        try {
            return ended.await(milliseconds, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    private void copy() throws IOException {
        bytes.clear();
        bytes.asIntBuffer().put(counts);
        ByteBuffer rest = bytes.slice(4 * counts.length, 2 * counts.length);
        owners.putPixels(rest.order(ByteOrder.LITTLE_ENDIAN).asShortBuffer());
        for (long at = 0; bytes.hasRemaining(); ) {
            at += file.write(bytes, at);
        }
    }

    /** The picture is complete: copies it a last time. */
    void end() throws Failure {
        close();
        try {
            copy();
        } catch (IOException error) {
            throw failure(path, error);
        }
    }

    /** Copies no more. */
    @Override
    public void close() {
        ended.countDown();
        if (copying != null) {
            Threads.join(copying);
        }
    }

    private static Failure failure(Path path, IOException error) {
        return Failure.of(
                "live picture " + path + ": cannot be written: " + Failure.reason(error)
                        + "; name a writable file with --live",
                error);
    }
}
