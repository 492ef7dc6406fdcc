package concurve.mandelbrot;

import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Entry point: exit code 0 done, 1 failed, 2 wrong usage. */
public final class Main {
    static final String NAME = "concurve-mandelbrot-java";

    private Main() {}

    /** Parses the command line and does what it asks. */
    public static void main(String[] line) {
        // Without System.exit, a JVM waits for threads that a failure may have left behind.
        System.exit(run(line));
    }

    private static int run(String[] line) {
        List<String> words = List.of(line);
        if (words.contains("--help") || words.contains("-h")) {
            System.out.print(Options.HELP);
            return 0;
        }
        if (words.contains("--version") || words.contains("-V")) {
            System.out.println(NAME + " " + Main.class.getPackage().getImplementationVersion());
            return 0;
        }
        try {
            compute(Options.parse(line));
            return 0;
        } catch (Failure failure) {
            boolean usage = failure.exitCode() == Failure.USAGE;
            System.err.println((usage ? "" : NAME + ": ") + failure.getMessage());
            return failure.exitCode();
        }
    }

    private static void compute(Options options) throws Failure {
        PngFile png = options.png() == null ? null : PngFile.open(options.png());
        try (LiveFile live = options.live() == null ? null : LiveFile.open(options.live())) {
            int[] counts = compute(options, live);
            if (live != null) {
                live.end();
            }
            if (png != null) {
                png.write(options.view(), counts);
            }
        }
    }

    private static int[] compute(Options options, LiveFile live) throws Failure {
        Reporter reporter = Reporter.of(System.getenv(Reporter.VARIABLE));
        Output output = new Output(options, reporter, System.out);
        output.facts();
        int[] counts = allocateCounts(options.view());
        ComputeOptions computeOptions = options.computeOptions();
        Cut cut = Cut.of(options.view(), computeOptions.grain(), computeOptions.tileSize());
        Owners owners = null;
        if (live != null) {
            owners = new Owners(cut);
            live.begin(counts, owners);
        }
        try (Workers workers = Workers.of(computeOptions)) {
            workers.start();
            output.ready();
            boolean created = computeOptions.create() == ComputeOptions.Create.START;
            if (created) {
                output.kernelThreads();
            }
            computeAll(options, cut, workers, counts, owners, output);
            if (!created) {
                output.kernelThreads();
            }
            output.summary();
            hold(options.holdMs(), output);
        }
        return counts;
    }

    /** With no workers nothing is computed; the JVM's own threads can still be observed. */
    private static void computeAll(
            Options options, Cut cut, Workers workers, int[] counts, Owners owners, Output output)
            throws Failure {
        ComputeOptions computeOptions = options.computeOptions();
        for (int i = 0; i < options.computations() && computeOptions.threads() > 0; i++) {
            Handout handout =
                    Handout.of(cut, computeOptions.sync(), computeOptions.threads()).notedBy(owners);
            output.result(workers.compute(handout, counts, output));
        }
    }

    private static int[] allocateCounts(View view) throws Failure {
        try {
            return new int[(int) view.pixels()];
        } catch (OutOfMemoryError refused) {
            throw Failure.of(
                    "picture: " + view.width() + " by " + view.height() + " pixels need "
                            + 4 * view.pixels() + " bytes, the heap has "
                            + Runtime.getRuntime().maxMemory()
                            + "; a smaller --width and --height, or a bigger heap with -Xmx",
                    refused);
        }
    }

    /** Keeps the workers alive so that they can be observed. */
    private static void hold(long milliseconds, Output output) throws Failure {
        if (milliseconds == 0) {
            return;
        }
        output.holdBegins();
        long endNs = Clock.monotonicNs() + milliseconds * 1_000_000;
        for (long left; (left = endNs - Clock.monotonicNs()) > 0; ) {
            LockSupport.parkNanos(left);
        }
        output.holdEnds();
    }
}
