import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Uses Curator as it is told on standard input; worker.go has the orders. What it says here is for InterProcessMutex, CuratorQueues for the queues, CuratorCounters for the counters. */
final class CuratorWorker {
    static final ExecutorService POOL = Executors.newCachedThreadPool();
    private static final List<CuratorFramework> CLIENTS = new ArrayList<>();
    private static String root;
    private static int lockers;
    private static int locks;
    private static Waiters waiters;

    private static InterProcessMutex mutex(int locker, int lock) {
        return new InterProcessMutex(CLIENTS.get(locker % CLIENTS.size()), String.format("%s/%03d", root, lock));
    }

    /** Cycles in all threads. With a list of cycles, writes them down. */
    private static String run(long millis, boolean trace, PrintStream out) throws Exception {
        long start = System.nanoTime();
        long end = start + TimeUnit.MILLISECONDS.toNanos(millis);
        List<Future<List<long[]>>> traces = new ArrayList<>();
        long[] counts = new long[lockers];
        for (int i = 0; i < lockers; i++) {
            int locker = i;
            InterProcessMutex m = mutex(locker, locker % locks);
            traces.add(POOL.submit(() -> {
                List<long[]> cycles = new ArrayList<>();
                while (System.nanoTime() < end) {
                    long began = trace ? now() : 0;
                    m.acquire();
                    long locked = trace ? now() : 0;
                    if (trace) {
                        cycles.add(new long[] {began, locked, now()});
                    }
                    m.release();
                    counts[locker]++;
                }
                return cycles;
            }));
        }
        StringBuilder text = new StringBuilder();
        for (Future<List<long[]>> f : traces) {
            for (long[] c : f.get()) {
                text.append("t ").append(c[0]).append(' ').append(c[1]).append(' ').append(c[2]).append('\n');
            }
        }
        long took = System.nanoTime() - start;
        out.print(text);
        long sum = 0;
        for (long n : counts) {
            sum += n;
        }
        return "ok " + sum + " " + took;
    }

    /** The system's clock, in nanoseconds. */
    static long now() {
        Instant t = Instant.now();
        return t.getEpochSecond() * 1_000_000_000L + t.getNano();
    }

    /** One holder and n waiters. */
    private static final class Waiters {
        private final LinkedBlockingQueue<Boolean> held = new LinkedBlockingQueue<>();
        private final Semaphore pass = new Semaphore(0);
        private final List<Future<?>> all = new ArrayList<>();
        private final int size;

        Waiters(int n) throws Exception {
            size = n + 1;
            for (int i = 0; i < size; i++) {
                InterProcessMutex m = mutex(i, 0);
                Callable<Void> turn = () -> {
                    m.acquire();
                    held.add(true);
                    pass.acquire();
                    m.release();
                    return null;
                };
                all.add(POOL.submit(turn));
                if (i == 0) {
                    held.take();
                }
            }
        }

        String step() throws Exception {
            long start = System.nanoTime();
            pass.release();
            held.take();
            return "ok " + (System.nanoTime() - start);
        }

        String drain() throws Exception {
            long start = System.nanoTime();
            pass.release(size);
            for (Future<?> f : all) {
                f.get();
            }
            return "ok " + (System.nanoTime() - start);
        }
    }

    static String memory() {
        System.gc();
        System.gc();
        return "ok " + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() + " " + ManagementFactory.getThreadMXBean().getThreadCount();
    }

    /** What obeys orders that have up to two numbers behind them. */
    interface Worker {
        String obey(String order, int[] n, PrintStream out) throws Exception;
    }

    private static String lock(String order, int[] n, PrintStream out) throws Exception {
        switch (order) {
            case "run":
            case "trace":
                return run(n[0], order.equals("trace"), out);
            case "stand":
                waiters = new Waiters(n[0]);
                return "ok";
            case "step":
                return waiters.step();
            case "drain":
                return waiters.drain();
            case "memory":
                return memory();
            default:
                throw new IllegalArgumentException("unknown order " + order);
        }
    }

    public static void main(String[] args) throws Exception {
        root = args[1];
        lockers = Integer.parseInt(args[3]);
        locks = Integer.parseInt(args[4]);
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            CuratorFramework c = CuratorFrameworkFactory.newClient(args[0], 30_000, 30_000, new ExponentialBackoffRetry(100, 3));
            c.start();
            if (!c.blockUntilConnected(30, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection");
            }
            CLIENTS.add(c);
        }
        Worker worker;
        switch (args[5]) {
            case "Curator":
                worker = CuratorWorker::lock;
                break;
            case "CuratorCache":
                worker = new CuratorCaches(CLIENTS, root, locks);
                break;
            case "CuratorLong":
            case "CuratorCached":
                worker = new CuratorCounters(args[5], CLIENTS, root, lockers);
                break;
            case "CuratorDouble":
                worker = new CuratorBarriers(CLIENTS, root, locks);
                break;
            default:
                worker = new CuratorQueues(args[5], CLIENTS, root, lockers);
        }
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        out.println("ready");
        out.flush();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split(" ");
            int[] numbers = new int[2];
            String answer;
            try {
                for (int i = 1; i < words.length; i++) {
                    numbers[i - 1] = Integer.parseInt(words[i]);
                }
                answer = worker.obey(words[0], numbers, out);
            } catch (Exception e) {
                answer = "error " + e;
            }
            out.println(answer);
            out.flush();
        }
        for (CuratorFramework c : CLIENTS) {
            c.close();
        }
        System.exit(0);
    }
}
