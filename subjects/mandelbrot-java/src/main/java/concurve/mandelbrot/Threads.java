package concurve.mandelbrot;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** How workers' threads are created. */
final class Threads {
    /** Stack of a platform thread: the kernel needs a few frames. */
    private static final long STACK_BYTES = 256 * 1024;

    private static final int VIRTUAL_SINCE = 21;

    private Threads() {}

    /** Makes a thread that is not yet started. */
    interface Maker {
        Thread make(String name, Runnable work);
    }

    /** As the threads of document 002 were called; {@code worker} counts from 0. */
    static String name(int worker) {
        return "Thread-" + (worker + 1);
    }

    static Maker maker(ComputeOptions options) throws Failure {
        if (options.kind() == ComputeOptions.Kind.VIRTUAL) {
            return virtualMaker();
        }
        return (name, work) -> {
            Thread thread = new Thread(null, work, name, STACK_BYTES);
            thread.setPriority(options.priority());
            return thread;
        };
    }

    /** Refuses more threads than this machine can hold, before any is created. */
    static void check(ComputeOptions options) throws Failure {
        if (options.kind() == ComputeOptions.Kind.VIRTUAL) {
            Limits.checkHeap(options.threads());
        } else {
            Limits.checkMemoryMaps(options.threads());
        }
    }

    /** {@code Thread.ofVirtual().unstarted(work)}, looked up because Java 17 has no such method. */
    private static Maker virtualMaker() throws Failure {
        if (Runtime.version().feature() < VIRTUAL_SINCE) {
            throw Failure.of(
                    "--kind virtual: virtual threads need Java " + VIRTUAL_SINCE
                            + " or newer, this is Java " + Runtime.version().feature() + " ("
                            + System.getProperty("java.home") + "); run the jar with a newer java,"
                            + " or use --kind platform");
        }
        try {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            Class<?> builder = Class.forName("java.lang.Thread$Builder$OfVirtual");
            Class<?> general = Class.forName("java.lang.Thread$Builder");
            Object ofVirtual =
                    lookup.findStatic(Thread.class, "ofVirtual", MethodType.methodType(builder))
                            .invoke();
            MethodHandle unstarted =
                    lookup.findVirtual(
                                    general,
                                    "unstarted",
                                    MethodType.methodType(Thread.class, Runnable.class))
                            .bindTo(ofVirtual);
            return (name, work) -> {
                Thread thread = unstarted(unstarted, work);
                thread.setName(name);
                return thread;
            };
        } catch (Throwable error) {
            throw Failure.of("--kind virtual: this JVM has no virtual threads: " + error, error);
        }
    }

    private static Thread unstarted(MethodHandle unstarted, Runnable work) {
        try {
            return (Thread) unstarted.invoke(work);
        } catch (Error error) {
            throw error;
        } catch (Throwable error) {
            throw new IllegalStateException(error);
        }
    }

    /** Waits for the end of a thread; this program interrupts no threads. */
    static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
