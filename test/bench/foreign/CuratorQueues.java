import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Puts into and takes from one of Curator's queues. The first client puts, the last one takes. */
final class CuratorQueues implements CuratorWorker.Worker {
    private static final int ITEM_BYTES = 100;
    private static final int BATCH_ITEMS = 1000;

    /** A queue. */
    interface Tasks {
        void put(List<byte[]> bodies) throws Exception;

        /** Takes up to n items and acknowledges them, and no more when the time is over. Returns how many, and how many nanoseconds it took. */
        long[] take(int n, long millis) throws Exception;

        /** Takes an item, acknowledges it, and returns when it had it. */
        long receive() throws Exception;
    }

    private final Tasks tasks;
    private long made;

    CuratorQueues(String kind, List<CuratorFramework> clients, String root, int workers) throws Exception {
        CuratorFramework producer = clients.get(0);
        CuratorFramework consumer = clients.get(clients.size() - 1);
        switch (kind) {
            case "CuratorSimple":
                tasks = new Simple(producer, consumer, root, workers);
                break;
            case "CuratorQueue":
                tasks = new Distributed(producer, consumer, root, workers);
                break;
            default:
                throw new IllegalArgumentException("there is no " + kind);
        }
    }

    private List<byte[]> bodies(int n) {
        List<byte[]> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            all.add(String.format("%0" + ITEM_BYTES + "d", ++made).getBytes(StandardCharsets.US_ASCII));
        }
        return all;
    }

    @Override
    public String obey(String order, int[] n, PrintStream out) throws Exception {
        switch (order) {
            case "put":
                return put(n[0], 1);
            case "batch":
                return put(n[0], BATCH_ITEMS);
            case "take":
                long[] taken = tasks.take(n[0], n[1]);
                return "ok " + taken[0] + " " + taken[1];
            case "relay":
                return relay(n[0], out);
            case "memory":
                return CuratorWorker.memory();
            default:
                throw new IllegalArgumentException("unknown order " + order);
        }
    }

    private String put(long millis, int batch) throws Exception {
        long n = 0;
        long start = System.nanoTime();
        while (System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(millis)) {
            tasks.put(bodies(batch));
            n += batch;
        }
        return "ok " + n + " " + (System.nanoTime() - start);
    }

    /** Hands one item after the other from the producer to a consumer that waits for it. */
    private String relay(long millis, PrintStream out) throws Exception {
        SynchronousQueue<Long> taken = new SynchronousQueue<>();
        AtomicBoolean over = new AtomicBoolean();
        Future<Void> consumer = CuratorWorker.POOL.submit(() -> {
            for (;;) {
                long at = tasks.receive();
                if (over.get()) {
                    return null;
                }
                taken.put(at);
            }
        });
        StringBuilder text = new StringBuilder();
        long n = 0;
        long start = System.nanoTime();
        while (System.nanoTime() - start < TimeUnit.MILLISECONDS.toNanos(millis)) {
            long began = CuratorWorker.now();
            tasks.put(bodies(1));
            Long at = taken.poll(10, TimeUnit.SECONDS);
            if (at == null) {
                throw new TimeoutException("an item does not arrive");
            }
            text.append("t ").append(began).append(' ').append(at).append(' ').append(at).append('\n');
            n++;
        }
        long took = System.nanoTime() - start;
        over.set(true);
        tasks.put(bodies(1));
        consumer.get();
        out.print(text);
        return "ok " + n + " " + took;
    }

    /** SimpleDistributedQueue: an item is gone when it is taken. */
    private static final class Simple implements Tasks {
        private final SimpleDistributedQueue producer;
        private final SimpleDistributedQueue consumer;
        private final int workers;

        Simple(CuratorFramework producer, CuratorFramework consumer, String root, int workers) {
            this.producer = new SimpleDistributedQueue(producer, root);
            this.consumer = new SimpleDistributedQueue(consumer, root);
            this.workers = workers;
        }

        @Override
        public void put(List<byte[]> bodies) throws Exception {
            for (byte[] b : bodies) {
                producer.offer(b);
            }
        }

        @Override
        public long[] take(int n, long millis) throws Exception {
            AtomicInteger begun = new AtomicInteger();
            AtomicInteger done = new AtomicInteger();
            long start = System.nanoTime();
            long end = start + TimeUnit.MILLISECONDS.toNanos(millis);
            List<Future<Void>> all = new ArrayList<>();
            for (int i = 0; i < workers; i++) {
                all.add(CuratorWorker.POOL.submit(() -> {
                    while (System.nanoTime() < end && begun.incrementAndGet() <= n) {
                        consumer.take();
                        done.incrementAndGet();
                    }
                    return null;
                }));
            }
            for (Future<Void> f : all) {
                f.get();
            }
            return new long[] {done.get(), System.nanoTime() - start};
        }

        @Override
        public long receive() throws Exception {
            consumer.take();
            return CuratorWorker.now();
        }
    }

    /**
     * DistributedQueue with a lock path. It hands items to a consumer, which lets them wait until there is an order to take some. An item that
     * waits is locked and read already; so an order is done when what it passed is deleted and others wait. They may be fewer than when it
     * began, which is to this queue's advantage: it lists again only when it has handed over the whole of the last list.
     */
    private static final class Distributed implements Tasks, QueueConsumer<byte[]> {
        private static final long PATIENCE_MILLIS = 10_000;

        private final DistributedQueue<byte[]> producer;
        private final CuratorFramework client;
        private final String root;
        private final int workers;
        private DistributedQueue<byte[]> consumer;
        private ThreadPoolExecutor threads; // null if the queue's own thread is the only one
        private int allowed; // guarded by this, as the next three
        private int waiting;
        private int passed;
        private long last; // when the last one was passed

        Distributed(CuratorFramework first, CuratorFramework client, String root, int workers) throws Exception {
            this.client = client;
            this.root = root;
            this.workers = workers;
            producer = builder(first, null).putInBackground(false).buildQueue();
            producer.start();
        }

        private QueueBuilder<byte[]> builder(CuratorFramework client, QueueConsumer<byte[]> into) {
            QueueSerializer<byte[]> raw = new QueueSerializer<byte[]>() {
                @Override
                public byte[] serialize(byte[] item) {
                    return item;
                }

                @Override
                public byte[] deserialize(byte[] bytes) {
                    return bytes;
                }
            };
            return QueueBuilder.builder(client, into, raw, root).lockPath(root + "-locks");
        }

        /** The consumer, from the first order that wants one on. */
        private synchronized void consume() throws Exception {
            if (consumer != null) {
                return;
            }
            QueueBuilder<byte[]> b = builder(client, this);
            if (workers > 1) {
                threads = (ThreadPoolExecutor) Executors.newFixedThreadPool(workers);
                b = b.executor(threads);
            }
            consumer = b.buildQueue();
            consumer.start();
        }

        @Override
        public void put(List<byte[]> bodies) throws Exception {
            if (bodies.size() == 1) {
                producer.put(bodies.get(0));
                return;
            }
            Iterator<byte[]> all = bodies.iterator();
            producer.putMulti(() -> all.hasNext() ? all.next() : null);
        }

        @Override
        public synchronized void consumeMessage(byte[] body) throws InterruptedException {
            waiting++;
            notifyAll();
            while (allowed == 0) {
                wait();
            }
            allowed--;
            waiting--;
            passed++;
            last = CuratorWorker.now();
            notifyAll();
        }

        @Override
        public void stateChanged(CuratorFramework c, ConnectionState state) {
        }

        private interface Condition {
            boolean holds();
        }

        /** Reports whether items wait, and nothing else is being done. */
        private boolean ready() {
            return waiting > 0 && (threads == null || threads.getActiveCount() == waiting);
        }

        /** Waits until it holds, at most until the time, and reports whether it does. */
        private boolean await(Condition c, long until) throws InterruptedException {
            while (!c.holds()) {
                if (System.nanoTime() >= until) {
                    return false;
                }
                wait(1); // nobody tells of a thread that has nothing to do any more
            }
            return true;
        }

        private void insist(Condition c, String what) throws Exception {
            if (!await(c, System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS))) {
                throw new TimeoutException(what + " within " + PATIENCE_MILLIS / 1000 + " s");
            }
        }

        @Override
        public long[] take(int n, long millis) throws Exception {
            consume();
            synchronized (this) {
                insist(this::ready, "the consumer gets no item");
                int before = passed;
                long start = System.nanoTime();
                allowed = n;
                notifyAll();
                await(() -> passed == before + n, start + TimeUnit.MILLISECONDS.toNanos(millis));
                allowed = 0;
                insist(this::ready, "the consumer gets no more items");
                return new long[] {passed - before, System.nanoTime() - start};
            }
        }

        @Override
        public long receive() throws Exception {
            consume();
            synchronized (this) {
                int before = passed;
                allowed = 1;
                notifyAll();
                insist(() -> passed > before, "the consumer gets no item");
                return last;
            }
        }
    }
}
