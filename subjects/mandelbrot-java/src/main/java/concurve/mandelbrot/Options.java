package concurve.mandelbrot;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The command line. Options that the native kernel has too have its names and its meaning.
 *
 * @param holdMs how long the workers are kept alive when all is computed
 * @param png picture file, or null
 * @param live file of the picture while it is computed, or null
 * @param listing print the lines of Listing 1
 */
record Options(
        View view,
        ComputeOptions computeOptions,
        int computations,
        long holdMs,
        Path png,
        Path live,
        boolean listing) {

    static final String HELP =
            """
            Compute a picture of the Mandelbrot set with threads of the JVM, and print the time that it took

            Example: java -jar concurve-mandelbrot.jar --threads 2 --sync cas --computations 5

            Usage: concurve-mandelbrot.jar [OPTIONS]

            Options:
                  --threads <N>        Number of workers; 0: none, to observe the JVM's own threads
                                       [default: 1]
                  --kind <KIND>        Kind of the workers [default: platform]
                                       [possible values: platform, virtual, forkjoin, parallel-stream]
                  --priority <P>       Java priority of the workers, 1 to 10 [default: 5]
                  --create <WHEN>      Create workers before the clock starts, or anew for each
                                       computation while it runs [default: start]
                                       [possible values: start, run]
                  --after-loop <HOW>   When no work is left, workers sleep, or busy-wait as in JOMP
                                       [default: park] [possible values: park, spin]
                  --sync <SYNC>        How units of work are assigned to threads [default: none]
                                       [possible values: none, method, object, cas]
                  --grain <GRAIN>      How much work a thread gets at a time [default: line]
                                       [possible values: pixel, line, tile]
                  --tile-size <PIXELS> Side of a tile in pixels, with --grain tile [default: 32]
                  --location <FILE>    Bookmark file with region, picture size and depths
                                       [default: the built-in one]
                  --depth <DEPTH>      Which iteration depth of the bookmark file to use
                                       [default: quick] [possible values: quick, normal, rigorous]
                  --iterations <N>     Iteration depth, instead of that of the bookmark file
                  --width <PIXELS>     Pixels per line, instead of that of the bookmark file
                  --height <PIXELS>    Lines, instead of those of the bookmark file
                  --computations <N>   Number of computations in this process, one after the other; the
                                       first is reported separately (also --repeat) [default: 1]
                  --hold-ms <MS>       Keep the workers alive for this time at the end [default: 0]
                  --png <FILE>         Write the picture to a PNG file, after the clock has stopped
                  --live <FILE>        Keep the picture in this file while it is computed: the iteration
                                       counts as 32-bit numbers, line by line, then the thread of each
                                       pixel as a 16-bit number
                  --listing            Print the lines of the document's Listing 1 instead of
                                       `key value` lines
              -h, --help               Print help
              -V, --version            Print version
            """;

    private static final Set<String> VALUED =
            Set.of(
                    "--threads", "--kind", "--priority", "--create", "--after-loop", "--sync",
                    "--grain", "--tile-size", "--location", "--depth", "--iterations", "--width",
                    "--height", "--computations", "--repeat", "--hold-ms", "--png", "--live");

    private static final Set<String> FLAGS = Set.of("--listing", "--simd");

    private static final long UNSIGNED_MAX = 0xFFFF_FFFFL;

    private static final long HOLD_MS_MAX = 24L * 3600 * 1000;

    static Options parse(String[] line) throws Failure {
        Arguments given = Arguments.parse(line, VALUED, FLAGS);
        if (given.has("--simd")) {
            throw Arguments.usage(
                    "'--simd' is an option of the native kernel; the JVM kernel computes pixel by"
                            + " pixel");
        }
        given.excludes(List.of("--computations", "--repeat"));
        ComputeOptions computeOptions = computeOptions(given);
        String computations = given.has("--repeat") ? "--repeat" : "--computations";
        return new Options(
                view(given),
                computeOptions,
                given.number(computations, 1, Integer.MAX_VALUE).orElse(1L).intValue(),
                given.number("--hold-ms", 0, HOLD_MS_MAX).orElse(0L),
                given.text("--png").map(Path::of).orElse(null),
                given.text("--live").map(Path::of).orElse(null),
                given.has("--listing"));
    }

    private static ComputeOptions computeOptions(Arguments given) throws Failure {
        ComputeOptions computeOptions =
                new ComputeOptions(
                        threads(given),
                        given.choice("--kind", ComputeOptions.Kind.class, ComputeOptions.Kind.PLATFORM),
                        given.number("--priority", 1, 10).orElse(5L).intValue(),
                        given.choice("--create", ComputeOptions.Create.class, ComputeOptions.Create.START),
                        given.choice("--after-loop", ComputeOptions.AfterLoop.class, ComputeOptions.AfterLoop.PARK),
                        given.choice("--sync", Handout.Sync.class, Handout.Sync.NONE),
                        given.choice("--grain", Cut.Grain.class, Cut.Grain.LINE),
                        given.number("--tile-size", 1, Location.SIDE_MAX).orElse(32L).intValue());
        boolean virtual = computeOptions.kind() == ComputeOptions.Kind.VIRTUAL;
        if (virtual && computeOptions.priority() != Thread.NORM_PRIORITY) {
            throw Arguments.invalid(
                    "--priority",
                    String.valueOf(computeOptions.priority()),
                    "virtual threads always have priority 5; use --kind platform");
        }
        if (virtual && computeOptions.afterLoop() == ComputeOptions.AfterLoop.SPIN) {
            throw Arguments.invalid(
                    "--after-loop",
                    "spin",
                    "a virtual thread that busy-waits keeps its carrier, and others never begin;"
                            + " use park, or --kind platform");
        }
        return computeOptions;
    }

    /** As many as the native kernel takes on its command line; more than an int are refused as it does. */
    private static int threads(Arguments given) throws Failure {
        long threads = given.number("--threads", 0, UNSIGNED_MAX).orElse(1L);
        if (threads > Integer.MAX_VALUE - 8) {
            Limits.checkMemoryMaps(threads);
            Limits.checkHeap(threads);
        }
        return (int) threads;
    }

    private static View view(Arguments given) throws Failure {
        Location.Depth depth =
                given.choice("--depth", Location.Depth.class, Location.Depth.QUICK);
        Optional<Long> iterations = given.number("--iterations", 1, UNSIGNED_MAX);
        Optional<Long> width = given.number("--width", 1, Location.SIDE_MAX);
        Optional<Long> height = given.number("--height", 1, Location.SIDE_MAX);
        Optional<String> file = given.text("--location");
        Location location =
                file.isPresent() ? Location.read(Path.of(file.get())) : Location.builtIn();
        return View.of(
                location,
                width.map(Long::intValue).orElse(location.width()),
                height.map(Long::intValue).orElse(location.height()),
                iterations.map(Long::intValue).orElse(location.iterations().get(depth)));
    }
}
