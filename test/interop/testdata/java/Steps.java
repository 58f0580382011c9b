import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Runs named steps one after the other. The first that throws ends the program with exit status 1. */
final class Steps {
    interface Step {
        void run() throws Exception;
    }

    static final int PATIENCE_SECONDS = 20;

    private final Map<String, Step> steps = new LinkedHashMap<>();

    void add(String name, Step step) {
        steps.put(name, step);
    }

    /** Runs all steps, or the named ones. */
    void runAll(String[] only) {
        for (Map.Entry<String, Step> e : steps.entrySet()) {
            if (only.length > 0 && !java.util.Arrays.asList(only).contains(e.getKey())) {
                continue;
            }
            try {
                long began = System.nanoTime();
                e.getValue().run();
                System.out.println("ok " + e.getKey() + " " + (System.nanoTime() - began) / 1_000_000 + "ms");
            } catch (Throwable t) {
                System.out.println("FAILED " + e.getKey());
                t.printStackTrace(System.out);
                System.exit(1);
            }
        }
        System.exit(0);
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void yes(boolean ok, String what) {
        if (!ok) {
            throw new AssertionError(what);
        }
    }

    static void await(CountDownLatch latch, String what) throws InterruptedException {
        yes(latch.await(PATIENCE_SECONDS, TimeUnit.SECONDS), "no " + what + " within " + PATIENCE_SECONDS + "s");
    }

    /** Waits until ask returns true. */
    static void until(String what, Callable<Boolean> ask) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!ask.call()) {
            yes(System.nanoTime() < end, "not " + what + " within " + PATIENCE_SECONDS + "s");
            Thread.sleep(5);
        }
    }

    /** Runs step, which must throw an exception of the given class. */
    static void fails(Class<? extends Throwable> want, Step step) throws Exception {
        try {
            step.run();
        } catch (Throwable t) {
            if (want.isInstance(t)) {
                return;
            }
            throw new AssertionError("got " + t + ", want " + want.getName(), t);
        }
        throw new AssertionError("no exception, want " + want.getName());
    }
}
