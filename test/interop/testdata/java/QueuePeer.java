import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.ErrorMode;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.ZooKeeper;

/**
 * Executes the commands of queue_peer_test.go on the queues of Curator and of ZooKeeper itself.
 * Arguments: SERVERS SESSION_MS.
 */
final class QueuePeer {
    interface Peer {
        void put(String arg, String... bodies) throws Exception;

        void consume() throws Exception;

        void stop() throws Exception;

        /** Executes any other command of the queue and returns the answer. */
        String ask(String order, String arg) throws Exception;
    }

    private static CuratorFramework client;
    private static ZooKeeper zk;

    static UnsupportedOperationException unknown(String order) {
        return new UnsupportedOperationException("no order " + order);
    }

    /** Curator's queues, which call a consumer with their items. */
    static final class Distributed implements Peer {
        private final String name;
        private final String kind;
        private final String path;
        private final String lockPath;
        private final QueueBase<String> producer;
        private QueueBase<String> consumer;
        private Turnstile turnstile;

        Distributed(String name, String kind, String path, String lockPath) throws Exception {
            this.name = name;
            this.kind = kind;
            this.path = path;
            this.lockPath = lockPath;
            producer = build(null, Runnable::run);
            producer.start();
        }

        private QueueBase<String> build(QueueConsumer<String> into, Executor executor) {
            QueueBuilder<String> b = QueueBuilder.builder(client, into, Recipes.TEXT, path).executor(executor);
            if (!lockPath.equals("-")) {
                b = b.lockPath(lockPath);
            }
            switch (kind) {
                case "priority":
                    return b.buildPriorityQueue(0);
                case "delay":
                    return b.buildDelayQueue();
                case "id":
                    return b.buildIdQueue();
                default:
                    return b.buildQueue();
            }
        }

        @Override
        @SuppressWarnings("unchecked")
        public void put(String arg, String... bodies) throws Exception {
            Iterator<String> all = Arrays.asList(bodies).iterator();
            MultiItem<String> items = () -> all.hasNext() ? all.next() : null;
            switch (kind) {
                case "priority":
                    ((DistributedPriorityQueue<String>) producer).putMulti(items, Integer.parseInt(arg));
                    break;
                case "delay":
                    ((DistributedDelayQueue<String>) producer).putMulti(items, Long.parseLong(arg));
                    break;
                case "id":
                    ((DistributedIdQueue<String>) producer).put(bodies[0], arg);
                    break;
                default:
                    ((DistributedQueue<String>) producer).putMulti(items);
            }
            Steps.yes(producer.flushPuts(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not put");
        }

        @Override
        public void consume() throws Exception {
            start(body -> Orders.say("got " + name + " " + body), Runnable::run);
        }

        private void start(Consume each, Executor executor) throws Exception {
            consumer = build(new QueueConsumer<String>() {
                @Override
                public void consumeMessage(String body) throws Exception {
                    each.consume(body);
                }

                @Override
                public void stateChanged(CuratorFramework c, ConnectionState state) {
                }
            }, executor);
            consumer.start();
        }

        @Override
        @SuppressWarnings("unchecked")
        public String ask(String order, String arg) throws Exception {
            switch (order) {
                case "remove":
                    return "removed " + ((DistributedIdQueue<String>) producer).remove(arg);
                case "get":
                    if (turnstile == null) {
                        turnstile = new Turnstile();
                        start(turnstile, turnstile);
                    }
                    return "item " + turnstile.next();
                case "done":
                    return turnstile.end(true);
                case "requeue":
                    consumer.setErrorMode(ErrorMode.REQUEUE);
                    return turnstile.end(false);
                case "drop":
                    consumer.setErrorMode(ErrorMode.DELETE);
                    return turnstile.end(false);
                default:
                    throw unknown(order);
            }
        }

        @Override
        public void stop() throws Exception {
            consumer.close();
        }
    }

    interface Consume {
        void consume(String body) throws Exception;
    }

    /** Admits a consumer for one item at a time, and keeps it until a command says how that ends. */
    static final class Turnstile implements Executor, Consume {
        private final Semaphore open = new Semaphore(0);
        private final BlockingQueue<String> in = new LinkedBlockingQueue<>();
        private final BlockingQueue<Boolean> ends = new LinkedBlockingQueue<>();
        private final Semaphore out = new Semaphore(0);
        private boolean through;

        /** Handles an item, which another consumer may have by then. */
        @Override
        public void execute(Runnable item) {
            open.acquireUninterruptibly();
            through = false;
            item.run();
            (through ? out : open).release();
        }

        @Override
        public void consume(String body) throws Exception {
            through = true;
            in.put(body);
            if (!ends.take()) {
                throw new Exception("told to fail");
            }
        }

        String next() throws Exception {
            open.release();
            String body = in.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
            Steps.yes(body != null, "no item");
            return body;
        }

        String end(boolean well) throws Exception {
            ends.put(well);
            Steps.yes(out.tryAcquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "the item is not finished");
            return "ok";
        }
    }

    interface Take {
        byte[] take() throws Exception;
    }

    interface Put {
        boolean put(byte[] body) throws Exception;
    }

    /** Queues with methods that take an item. */
    static final class Asked implements Peer {
        private final String name;
        private final Put offer;
        private final Map<String, Take> takes;
        private Thread consuming;

        Asked(String name, Put offer, Map<String, Take> takes) {
            this.name = name;
            this.offer = offer;
            this.takes = takes;
        }

        @Override
        public void put(String arg, String... bodies) throws Exception {
            Steps.yes(offer.put(Orders.bytes(bodies[0])), "no offer");
        }

        @Override
        public String ask(String order, String arg) throws Exception {
            if (!takes.containsKey(order)) {
                throw unknown(order);
            }
            try {
                byte[] body = takes.get(order).take();
                return body == null ? "none" : "item " + Orders.text(body);
            } catch (NoSuchElementException e) {
                return "empty";
            }
        }

        @Override
        public void consume() {
            consuming = new Thread(() -> {
                try {
                    for (;;) {
                        Orders.say("got " + name + " " + Orders.text(takes.get("take").take()));
                    }
                } catch (InterruptedException e) {
                    return;
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            consuming.setDaemon(true);
            consuming.start();
        }

        @Override
        public void stop() throws Exception {
            consuming.interrupt();
            consuming.join();
        }
    }

    static Peer open(String name, String kind, String path, String lockPath) throws Exception {
        switch (kind) {
            case "simple":
                SimpleDistributedQueue s = new SimpleDistributedQueue(client, path);
                return new Asked(name, s::offer, Map.of("peek", s::peek, "element", s::element, "poll", s::poll, "remove", s::remove, "take", s::take,
                    "pollfor", () -> s.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "pollbriefly", () -> s.poll(50, TimeUnit.MILLISECONDS)));
            case "zookeeper":
                org.apache.zookeeper.recipes.queue.DistributedQueue z = new org.apache.zookeeper.recipes.queue.DistributedQueue(zk, path, null);
                return new Asked(name, z::offer, Map.of("peek", z::peek, "element", z::element, "poll", z::poll, "remove", z::remove, "take", z::take));
            default:
                return new Distributed(name, kind, path, lockPath);
        }
    }

    public static void main(String[] args) throws Exception {
        client = Orders.connect(args[0], Integer.parseInt(args[1]));
        zk = client.getZookeeperClient().getZooKeeper();
        Map<String, Peer> peers = new HashMap<>();
        Orders.follow(words -> obey(peers, words));
    }

    private static String obey(Map<String, Peer> peers, String[] words) throws Exception {
        Peer peer = peers.get(words[1]);
        switch (words[0]) {
            case "open":
                peers.put(words[1], open(words[1], words[2], words[3], words[4]));
                return "ok";
            case "put":
                peer.put(words[2], Arrays.copyOfRange(words, 3, words.length));
                return "ok";
            case "consume":
                peer.consume();
                return "ok";
            case "stop":
                peer.stop();
                return "ok";
            default:
                return peer.ask(words[0], words.length > 2 ? words[2] : null);
        }
    }
}
