package concurve.mandelbrot;

import java.util.Comparator;
import java.util.List;

/**
 * One computation of the whole image.
 *
 * @param beginNs {@link Clock} just before the start barrier opened
 * @param endNs {@link Clock} when the last worker was done
 * @param workers in the order in which they were done
 * @param pixelSum sum of the iteration counts of all pixels
 */
record Computation(
        long beginNs, long endNs, List<WorkerResult> workers, long pixels, long pixelSum) {

    /** The workers' results as one, with every pixel accounted for. */
    static Computation of(
            long beginNs, long endNs, List<WorkerResult> results, Handout handout) throws Failure {
        long counted = results.stream().mapToLong(WorkerResult::pixels).sum();
        long underLock = handout.pixelsCounted() < 0 ? counted : handout.pixelsCounted();
        long expected = handout.cut.view().pixels();
        if (counted != expected || underLock != expected) {
            throw Failure.of(
                    "internal: " + (underLock == expected ? counted : underLock) + " of " + expected
                            + " pixels were computed; please report this with the command line");
        }
        List<WorkerResult> byEnd =
                results.stream().sorted(Comparator.comparingLong(WorkerResult::endNs)).toList();
        return new Computation(
                beginNs,
                endNs,
                byEnd,
                counted,
                results.stream().mapToLong(WorkerResult::iterations).sum());
    }

    double seconds() {
        return (endNs - beginNs) / 1e9;
    }
}
