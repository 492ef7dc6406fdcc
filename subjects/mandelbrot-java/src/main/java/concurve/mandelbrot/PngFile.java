package concurve.mandelbrot;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32;
import java.util.zip.DeflaterOutputStream;

/** A PNG file that was opened before the computation, so that a bad path costs no time. */
final class PngFile {
    private static final byte[] SIGNATURE = {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

    /** Colours at equal distances of the cycle that the iteration counts run through. */
    private static final int[][] CYCLE = {
        {8, 14, 48}, {28, 92, 168}, {160, 214, 232}, {250, 240, 208}, {240, 162, 40}, {104, 34, 30}
    };

    private static final byte[] INSIDE = {4, 5, 12};

    /** Doublings of the iteration count between two colours of the cycle. */
    private static final double DOUBLINGS = 0.55;

    private final Path path;
    private final FileChannel file;

    private PngFile(Path path, FileChannel file) {
        this.path = path;
        this.file = file;
    }

    /** Opens the file for writing; what it holds stays until {@link #write}. */
    static PngFile open(Path path) throws Failure {
        try {
            return new PngFile(
                    path,
                    FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE));
        } catch (IOException error) {
            throw failure(path, "opened for writing", error);
        }
    }

    /** Writes the picture; pixels that reached the limit are dark. */
    void write(View view, int[] counts) throws Failure {
        try (FileChannel channel = file.truncate(0);
                OutputStream out = new BufferedOutputStream(Channels.newOutputStream(channel))) {
            out.write(SIGNATURE);
            chunk(out, "IHDR", header(view));
            chunk(out, "IDAT", pixels(view, counts));
            chunk(out, "IEND", new byte[0]);
        } catch (IOException error) {
            throw failure(path, "written", error);
        }
    }

    private static Failure failure(Path path, String what, IOException error) {
        return Failure.of(
                "picture " + path + ": cannot be " + what + ": " + Failure.reason(error)
                        + "; name a writable file with --png",
                error);
    }

    private static byte[] header(View view) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream data = new DataOutputStream(bytes);
        data.writeInt(view.width());
        data.writeInt(view.height());
        // Eight bits a channel, red green blue, the one compression, the one filter set, no interlace.
        data.write(new byte[] {8, 2, 0, 0, 0});
        return bytes.toByteArray();
    }

    private static byte[] pixels(View view, int[] counts) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (OutputStream packed = new DeflaterOutputStream(bytes)) {
            byte[] line = new byte[1 + 3 * view.width()];
            for (int y = 0; y < view.height(); y++) {
                for (int x = 0; x < view.width(); x++) {
                    int count = counts[y * view.width() + x];
                    System.arraycopy(colour(count, view.iterations()), 0, line, 1 + 3 * x, 3);
                }
                packed.write(line);
            }
        }
        return bytes.toByteArray();
    }

    private static void chunk(OutputStream out, String type, byte[] content) throws IOException {
        byte[] name = type.getBytes(StandardCharsets.US_ASCII);
        CRC32 check = new CRC32();
        check.update(name);
        check.update(content);
        DataOutputStream data = new DataOutputStream(out);
        data.writeInt(content.length);
        data.write(name);
        data.write(content);
        data.writeInt((int) check.getValue());
    }

    /** Outside pixels by the logarithm of their count, so that every zoom shows all colours. */
    private static byte[] colour(int count, int limit) {
        if (Integer.compareUnsigned(count, limit) >= 0) {
            return INSIDE;
        }
        double place =
                Math.log(Math.max(1, Integer.toUnsignedLong(count))) / Math.log(2) / DOUBLINGS;
        int before = (int) place;
        double share = place - before;
        int[] from = CYCLE[before % CYCLE.length];
        int[] to = CYCLE[(before + 1) % CYCLE.length];
        byte[] colour = new byte[3];
        for (int i = 0; i < 3; i++) {
            colour[i] = (byte) Math.round(from[i] + (to[i] - from[i]) * share);
        }
        return colour;
    }
}
