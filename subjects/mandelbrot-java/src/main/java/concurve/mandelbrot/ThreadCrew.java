package concurve.mandelbrot;

import java.util.ArrayList;
import java.util.List;

/** Threads of our own, one for each worker, that wait for their work at a gate. */
final class ThreadCrew implements Crew {
    private final Setting setting;
    private final Threads.Maker maker;
    private final Gate gate;
    private final List<Thread> threads = new ArrayList<>();

    /** Renewed for each computation while the workers wait; published by the gate. */
    private Handout handout;

    private int[] counts;
    private WorkerResult[] results;

    ThreadCrew(Setting setting) throws Failure {
        this.setting = setting;
        this.maker = Threads.maker(setting);
        this.gate = new Gate(setting.afterLoop() == Setting.AfterLoop.SPIN);
    }

    @Override
    public void hire() throws Failure {
        Threads.check(setting);
        if (setting.create() == Setting.Create.START) {
            start(gate.round());
            await();
        }
    }

    @Override
    public Computation compute(Handout handout, int[] counts, Begin begin) throws Failure {
        boolean create = setting.create() == Setting.Create.RUN;
        if (create) {
            dismiss();
        }
        this.handout = handout;
        this.counts = counts;
        results = new WorkerResult[setting.threads()];
        long beginNs = Clock.monotonicNs();
        begin.at(beginNs);
        gate.open();
        if (create) {
            start(gate.round() - 1);
        } else {
            gate.wake(threads);
        }
        await();
        return Computation.of(beginNs, List.of(results), handout);
    }

    private void await() throws Failure {
        Throwable death = gate.await(setting.threads());
        if (death != null) {
            throw Failure.of("a worker died: " + death, death);
        }
    }

    /** Starts the workers, who have passed the gate {@code passed} times. */
    private void start(int passed) throws Failure {
        for (int worker = 0; worker < setting.threads(); worker++) {
            int number = worker;
            try {
                Thread thread = maker.make(Threads.name(worker), () -> live(number, passed));
                thread.start();
                threads.add(thread);
            } catch (OutOfMemoryError refused) {
                throw Limits.refused(setting.threads(), worker, refused);
            }
        }
    }

    /** A worker's life. */
    private void live(int worker, int passed) {
        try {
            for (int round = passed; gate.enter(round); round++) {
                results[worker] = work(worker);
            }
        } catch (Throwable death) {
            gate.breakDown(death);
        }
    }

    private WorkerResult work(int worker) {
        Handout handout = this.handout;
        Cut cut = handout.cut;
        int[] counts = this.counts;
        long beginNs = Clock.monotonicNs();
        long pixels = 0;
        long iterations = 0;
        int pixelsDone = 0;
        for (int place = 0, unit; (unit = handout.claim(worker, place, pixelsDone)) >= 0; place++) {
            iterations += cut.compute(unit, counts);
            pixelsDone = cut.pixels(unit);
            pixels += pixelsDone;
        }
        long endNs = Clock.monotonicNs();
        int priority = Thread.currentThread().getPriority();
        return new WorkerResult(
                Threads.name(worker), priority, pixels, iterations, beginNs, endNs);
    }

    /** Sends the workers of the last computation home; the gate is open again afterwards. */
    private void dismiss() {
        close();
        gate.reopen();
    }

    @Override
    public void close() {
        gate.close();
        gate.wake(threads);
        threads.forEach(Threads::join);
        threads.clear();
    }
}
