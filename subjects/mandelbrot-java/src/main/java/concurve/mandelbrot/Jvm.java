package concurve.mandelbrot;

import java.lang.management.CompilationMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** Facts about the virtual machine that runs this program. */
final class Jvm {
    private Jvm() {}

    /** Facts by name, in order. */
    static Map<String, Object> facts() {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("java_version", System.getProperty("java.version"));
        facts.put("java_vendor", System.getProperty("java.vendor"));
        facts.put(
                "jvm", System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version"));
        facts.put("java_home", System.getProperty("java.home"));
        facts.put("jvm_flags", flags());
        facts.put("collector", collector());
        facts.put("available_processors", Runtime.getRuntime().availableProcessors());
        return facts;
    }

    /** Every flag that was given: on the command line, in a file or in the environment. */
    private static List<String> flags() {
        return ManagementFactory.getRuntimeMXBean().getInputArguments();
    }

    private static String collector() {
        return collector(
                ManagementFactory.getGarbageCollectorMXBeans().stream()
                        .map(GarbageCollectorMXBean::getName)
                        .toList());
    }

    /** The usual name of a collector from the names of its parts. */
    static String collector(List<String> parts) {
        String all = String.join(", ", parts);
        Map<String, String> names = new LinkedHashMap<>();
        names.put("G1", "G1");
        names.put("Copy", "Serial");
        names.put("PS ", "Parallel");
        names.put("ZGC", "ZGC");
        names.put("Shenandoah", "Shenandoah");
        names.put("Epsilon", "Epsilon");
        return names.entrySet().stream()
                .filter(name -> all.contains(name.getKey()))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse(all);
    }

    /** Carrier threads of virtual threads: what was asked for, else one for each processor. */
    static int carriers() {
        return Integer.getInteger(
                "jdk.virtualThreadScheduler.parallelism",
                Runtime.getRuntime().availableProcessors());
    }

    /** Elapsed time that the just-in-time compilers took so far, in seconds. */
    static OptionalDouble jitSeconds() {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        if (compiler == null || !compiler.isCompilationTimeMonitoringSupported()) {
            return OptionalDouble.empty();
        }
        return OptionalDouble.of(compiler.getTotalCompilationTime() / 1e3);
    }
}
