package concurve.mandelbrot;

import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Hands out every unit of an image exactly once.
 *
 * <p>Document 002 compares synchronisation methods but never says what is locked. Here it is the
 * hand-out of work, and the grain says how much work one hand-out gives, so that the contention is a
 * factor of its own. A synchronized method and a synchronized block on the same object take the same
 * monitor, so {@code METHOD} and {@code OBJECT} differ in how much is inside.
 */
abstract class Handout {
    /** No more units. */
    static final int NONE = -1;

    /** How units of work are assigned to threads. */
    enum Sync {
        /** Static shares, dealt before the start; nothing is shared while computing. */
        NONE,
        /** A synchronized method around the hand-out and its bookkeeping. */
        METHOD,
        /** A synchronized block around the hand-out alone. */
        OBJECT,
        /** A compare-and-swap loop on the hand-out counter. */
        CAS
    }

    final Cut cut;

    /** Where workers note the units that they take; null if nobody wants to know. */
    private Owners owners;

    private Handout(Cut cut) {
        this.cut = cut;
    }

    static Handout of(Cut cut, Sync sync, int workers) {
        return switch (sync) {
            case NONE -> new Dealt(cut, workers);
            case METHOD -> new ByMethod(cut);
            case OBJECT -> new ByObject(cut);
            case CAS -> new ByCas(cut);
        };
    }

    /** The same hand-out; workers note the units that they take, if {@code owners} is not null. */
    Handout notedBy(Owners owners) {
        this.owners = owners;
        return this;
    }

    /** Notes that a worker, counted from 0, computes a unit. */
    final void note(int unit, int worker) {
        if (owners != null) {
            owners.take(unit, worker);
        }
    }

    /**
     * The next unit for a worker, or {@link #NONE}.
     *
     * @param place the worker's number of the hand-out, from 0: 0, 1, 2, …
     * @param pixelsDone pixels that it has computed since it last asked
     */
    abstract int claim(int worker, int place, int pixelsDone);

    /** Pixels counted under the coarse lock; −1 where each worker keeps its own count. */
    long pixelsCounted() {
        return -1;
    }

    private static final class Dealt extends Handout {
        private final int workers;

        Dealt(Cut cut, int workers) {
            super(cut);
            this.workers = workers;
        }

        @Override
        int claim(int worker, int place, int pixelsDone) {
            long mine = worker + (long) place * workers;
            return mine < cut.units() ? cut.dealt((int) mine) : NONE;
        }
    }

    private static final class ByMethod extends Handout {
        private int next;
        private long pixels;

        /** The progress that a user would see; kept because it is the data that the lock guards. */
        @SuppressWarnings("unused")
        private long percent;

        ByMethod(Cut cut) {
            super(cut);
        }

        @Override
        synchronized int claim(int worker, int place, int pixelsDone) {
            pixels += pixelsDone;
            percent = pixels * 100 / cut.view().pixels();
            return next < cut.units() ? next++ : NONE;
        }

        @Override
        synchronized long pixelsCounted() {
            return pixels;
        }
    }

    private static final class ByObject extends Handout {
        private final Object lock = new Object();
        private int next;

        ByObject(Cut cut) {
            super(cut);
        }

        @Override
        int claim(int worker, int place, int pixelsDone) {
            synchronized (lock) {
                return next < cut.units() ? next++ : NONE;
            }
        }
    }

    private static final class ByCas extends Handout {
        /** In the middle of an array, so that the counter has its cache lines for itself. */
        private static final int SLOT = 32;

        private final AtomicIntegerArray next = new AtomicIntegerArray(2 * SLOT);

        ByCas(Cut cut) {
            super(cut);
        }

        @Override
        int claim(int worker, int place, int pixelsDone) {
            int units = cut.units();
            for (int number = next.getPlain(SLOT); number < units; ) {
                int seen = next.compareAndExchange(SLOT, number, number + 1);
                if (seen == number) {
                    return number;
                }
                number = seen;
            }
            return NONE;
        }
    }
}
