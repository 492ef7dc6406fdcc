package concurve.mandelbrot;

import java.io.PrintStream;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;

/** Reports and prints what happens. */
final class Output implements Workers.Edges {
    /** The phase that counts: every computation, or (of several) every one but the first. */
    private static final String MEASURE = "measure";

    /** The first of several computations, which the JVM interprets and compiles. */
    private static final String FIRST = "first";

    private static final String HOLD = "hold";

    private final Options options;
    private final Reporter reporter;
    private final PrintStream out;

    private Computation first;
    private double firstJitSeconds;
    private int steady;
    private double steadySeconds;
    private long steadyPixels;
    private long steadyIterations;

    Output(Options options, Reporter reporter, PrintStream out) {
        this.options = options;
        this.reporter = reporter;
        this.out = out;
    }

    /** Facts about program and JVM. */
    void facts() throws Failure {
        if (!reporter.isConnected()) {
            return;
        }
        ComputeOptions computeOptions = options.computeOptions();
        reporter.fact("path", "scalar-jvm");
        reporter.fact("sync", Names.of(computeOptions.sync()));
        reporter.fact("grain", Names.of(computeOptions.grain()));
        if (computeOptions.grain() == Cut.Grain.TILE) {
            reporter.fact("tile_size", computeOptions.tileSize());
        }
        reporter.fact("threads", computeOptions.threads());
        reporter.fact("width", options.view().width());
        reporter.fact("height", options.view().height());
        reporter.fact("iterations", Integer.toUnsignedLong(options.view().iterations()));
        reporter.fact("thread_kind", Names.of(computeOptions.kind()));
        reporter.fact("priority", computeOptions.priority());
        reporter.fact("create", Names.of(computeOptions.create()));
        reporter.fact("after_loop", Names.of(computeOptions.afterLoop()));
        reporter.fact("computations", options.computations());
        for (Map.Entry<String, Object> fact : Jvm.facts().entrySet()) {
            reporter.fact(fact.getKey(), fact.getValue());
        }
        if (isVirtual()) {
            reporter.fact("carriers", Jvm.carriers());
        }
    }

    private boolean isVirtual() {
        return options.computeOptions().kind() == ComputeOptions.Kind.VIRTUAL;
    }

    void ready() throws Failure {
        reporter.ready();
    }

    /** The kernel's threads; to be called while all workers are alive. */
    void kernelThreads() throws Failure {
        if (!reporter.isConnected()) {
            return;
        }
        KernelThreads threads = KernelThreads.count(isVirtual()).orElse(null);
        if (threads == null) {
            return;
        }
        reporter.count("kernel_threads", threads.total());
        reporter.count("worker_kernel_threads", threads.workers());
        reporter.count("service_threads", threads.service());
        if (isVirtual()) {
            reporter.count("carrier_threads", threads.carriers());
        }
    }

    @Override
    public void begin(long beginNs) throws Failure {
        reporter.begin(phase(), beginNs);
    }

    private boolean isFirstOfSeveral() {
        return first == null && options.computations() > 1;
    }

    private String phase() {
        return isFirstOfSeveral() ? FIRST : MEASURE;
    }

    @Override
    public void end(long endNs) throws Failure {
        reporter.end(phase(), endNs);
    }

    /** A computation has ended: its time, and (where it counts) the workers' figures. */
    void result(Computation computation) throws Failure {
        reporter.seconds("computation_seconds", computation.seconds());
        if (isFirstOfSeveral()) {
            first = computation;
            firstJitSeconds = jitSeconds();
        } else {
            steady(computation);
        }
        print(computation);
    }

    private void steady(Computation computation) throws Failure {
        first = first == null ? computation : first;
        steady++;
        steadySeconds += computation.seconds();
        steadyPixels += computation.pixels();
        steadyIterations += computation.pixelSum();
        for (WorkerResult worker : computation.workers()) {
            reporter.workerCount("worker_pixels", worker.pixels(), worker.name());
            reporter.workerSeconds("worker_compute_seconds", worker.seconds(), worker.name());
        }
    }

    /** The figures of the whole run. */
    void summary() throws Failure {
        if (first == null || !reporter.isConnected()) {
            return;
        }
        boolean several = options.computations() > 1;
        double mean = steadySeconds / steady;
        reporter.seconds("compute_seconds", mean);
        reporter.count("operations", steadyPixels);
        reporter.count("iterations_total", steadyIterations);
        reporter.seconds("first_compute_seconds", first.seconds());
        if (several) {
            reporter.seconds("steady_compute_seconds", mean);
            reporter.seconds("first_jit_seconds", firstJitSeconds);
            reporter.seconds("steady_jit_seconds", jitSeconds() - firstJitSeconds);
        } else {
            reporter.seconds("first_jit_seconds", jitSeconds());
        }
        reporter.fact("pixel_sum", first.pixelSum());
    }

    private double jitSeconds() {
        OptionalDouble seconds = reporter.isConnected() ? Jvm.jitSeconds() : OptionalDouble.empty();
        return seconds.orElse(0);
    }

    void holdBegins() throws Failure {
        reporter.begin(HOLD, Clock.monotonicNs());
    }

    void holdEnds() throws Failure {
        reporter.end(HOLD, Clock.monotonicNs());
    }

    private void print(Computation computation) throws Failure {
        out.print(options.listing() ? listing(options.view(), computation) : figures(computation));
        out.flush();
        if (out.checkError()) {
            throw Failure.of(
                    "standard output: cannot be written; send it to a file or terminal that takes it");
        }
    }

    private static String figures(Computation computation) {
        return String.format(
                Locale.ROOT,
                "pixel_sum %d%npixels %d%ncompute_seconds %.6f%n",
                computation.pixelSum(),
                computation.pixels(),
                computation.seconds());
    }

    /** Listing 1 of document 002, §9.2.2, line for line. */
    static String listing(View view, Computation computation) {
        StringBuilder text = new StringBuilder(". . . . .\nCalculating...\n");
        text.append("X: 1 to ").append(view.width()).append('\n');
        text.append("Y: 1 to ").append(view.height()).append('\n');
        for (WorkerResult worker : computation.workers()) {
            text.append("Thread ").append(worker.name());
            text.append(" done (Priority ").append(worker.priority()).append(")\n");
        }
        long milliseconds = (computation.endNs() - computation.beginNs()) / 1_000_000;
        text.append("Run time: ").append(milliseconds).append("ms\n");
        text.append("Number of pixels rendered: ").append(computation.pixels()).append('\n');
        return text.toString();
    }
}
