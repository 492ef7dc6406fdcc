package concurve.mandelbrot;

/** Listing 1 of document 002, §9.2.2, line for line. */
final class Listing {
    private Listing() {}

    static String of(View view, Computation computation) {
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
