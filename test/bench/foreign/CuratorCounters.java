import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.retry.RetryNTimes;

/** Counts with one of Curator's counters, one for each thread. */
final class CuratorCounters implements CuratorWorker.Worker {
    /** A call of a counter. It returns whether it has succeeded. */
    private interface Call {
        boolean make() throws Exception;
    }

    private final List<Call> calls = new ArrayList<>();

    CuratorCounters(String kind, List<CuratorFramework> clients, String root, int workers) {
        // Without a pause between the tries it counts fastest.
        RetryNTimes policy = new RetryNTimes(Integer.MAX_VALUE, Integer.getInteger("pause", 0));
        for (int i = 0; i < workers; i++) {
            DistributedAtomicLong counter = new DistributedAtomicLong(clients.get(i % clients.size()), root, policy);
            if (kind.equals("CuratorLong")) {
                calls.add(() -> succeeded(counter.increment()));
            } else {
                CachedAtomicLong cached = new CachedAtomicLong(counter, 1000);
                calls.add(() -> succeeded(cached.next()));
            }
        }
    }

    private static boolean succeeded(AtomicValue<Long> v) {
        return v.succeeded();
    }

    @Override
    public String obey(String order, int[] n, PrintStream out) throws Exception {
        switch (order) {
            case "count":
                return count(n[0]);
            case "memory":
                return CuratorWorker.memory();
            default:
                throw new IllegalArgumentException("unknown order " + order);
        }
    }

    private String count(long millis) throws Exception {
        long start = System.nanoTime();
        long end = start + TimeUnit.MILLISECONDS.toNanos(millis);
        List<Future<Long>> all = new ArrayList<>();
        for (Call c : calls) {
            Callable<Long> loop = () -> {
                long done = 0;
                while (System.nanoTime() < end) {
                    if (c.make()) {
                        done++;
                    }
                }
                return done;
            };
            all.add(CuratorWorker.POOL.submit(loop));
        }
        long sum = 0;
        for (Future<Long> f : all) {
            sum += f.get();
        }
        return "ok " + sum + " " + (System.nanoTime() - start);
    }
}
