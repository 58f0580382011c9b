import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.queue.DistributedQueue;

/**
 * Uses the queues of Curator and of ZooKeeper itself as it is told on its input; queue_peer_test.go says how.
 * Arguments: SERVERS SESSION_MS.
 */
final class QueuePeer {
    interface Peer {
        void put(String arg, String... bodies) throws Exception;

        String take() throws Exception;

        void consume(boolean hold) throws Exception;

        default int remove(String id) throws Exception {
            throw new UnsupportedOperationException();
        }

        default void stop() throws Exception {
        }
    }

    private static final PrintStream out = System.out;
    private static CuratorFramework client;
    private static ZooKeeper zk;

    static synchronized void say(String line) {
        out.println(line);
        out.flush();
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] b) {
        return b == null ? null : new String(b, StandardCharsets.UTF_8);
    }

    /** Curator's queues that give their items to a consumer. */
    static final class Distributed implements Peer {
        private final String name;
        private final String kind;
        private final String path;
        private final String lockPath;
        private QueueBase<String> producer;
        private QueueBase<String> consumer;

        Distributed(String name, String kind, String path, String lockPath) throws Exception {
            this.name = name;
            this.kind = kind;
            this.path = path;
            this.lockPath = lockPath;
            producer = build(null);
            producer.start();
        }

        private QueueBase<String> build(QueueConsumer<String> into) {
            QueueBuilder<String> b = QueueBuilder.builder(client, into, Recipes.TEXT, path);
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
            switch (kind) {
                case "priority":
                    ((DistributedPriorityQueue<String>) producer).put(bodies[0], Integer.parseInt(arg));
                    break;
                case "delay":
                    ((DistributedDelayQueue<String>) producer).put(bodies[0], Long.parseLong(arg));
                    break;
                case "id":
                    ((DistributedIdQueue<String>) producer).put(bodies[0], arg);
                    break;
                default:
                    Iterator<String> all = Arrays.asList(bodies).iterator();
                    MultiItem<String> items = () -> all.hasNext() ? all.next() : null;
                    ((org.apache.curator.framework.recipes.queue.DistributedQueue<String>) producer).putMulti(items);
            }
            Steps.yes(producer.flushPuts(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not put");
        }

        @Override
        public String take() {
            throw new UnsupportedOperationException();
        }

        @Override
        public void consume(boolean hold) throws Exception {
            consumer = build(new QueueConsumer<String>() {
                @Override
                public void consumeMessage(String body) throws Exception {
                    say("got " + name + " " + body);
                    if (hold) {
                        Thread.sleep(Long.MAX_VALUE);
                    }
                }

                @Override
                public void stateChanged(CuratorFramework c, ConnectionState state) {
                }
            });
            consumer.start();
        }

        @Override
        @SuppressWarnings("unchecked")
        public int remove(String id) throws Exception {
            return ((DistributedIdQueue<String>) producer).remove(id);
        }

        @Override
        public void stop() throws Exception {
            if (consumer != null) {
                consumer.close();
            }
        }
    }

    interface Take {
        byte[] take() throws Exception;
    }

    interface Put {
        boolean put(byte[] body) throws Exception;
    }

    /** Queues whose items are asked for. */
    static final class Asked implements Peer {
        private final String name;
        private final Put offer;
        private final Take poll;
        private final Take wait;

        Asked(String name, Put offer, Take poll, Take wait) {
            this.name = name;
            this.offer = offer;
            this.poll = poll;
            this.wait = wait;
        }

        @Override
        public void put(String arg, String... bodies) throws Exception {
            Steps.yes(offer.put(bytes(bodies[0])), "no offer");
        }

        @Override
        public String take() throws Exception {
            return text(poll.take());
        }

        @Override
        public void consume(boolean hold) {
            Thread t = new Thread(() -> {
                try {
                    for (;;) {
                        say("got " + name + " " + text(wait.take()));
                    }
                } catch (InterruptedException e) {
                    return;
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            t.setDaemon(true);
            t.start();
            consuming = t;
        }

        private Thread consuming;

        @Override
        public void stop() throws Exception {
            if (consuming != null) {
                consuming.interrupt();
                consuming.join();
            }
        }
    }

    static Peer open(String name, String kind, String path, String lockPath) throws Exception {
        switch (kind) {
            case "simple":
                SimpleDistributedQueue simple = new SimpleDistributedQueue(client, path);
                return new Asked(name, simple::offer, simple::poll, simple::take);
            case "zookeeper":
                DistributedQueue queue = new DistributedQueue(zk, path, null);
                return new Asked(name, queue::offer, queue::poll, queue::take);
            default:
                return new Distributed(name, kind, path, lockPath);
        }
    }

    public static void main(String[] args) throws Exception {
        int session = Integer.parseInt(args[1]);
        client = CuratorFrameworkFactory.builder().connectString(args[0]).sessionTimeoutMs(session).connectionTimeoutMs(10000).retryPolicy(new RetryForever(20)).build();
        client.start();
        Steps.yes(client.blockUntilConnected(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no connection");
        zk = client.getZookeeperClient().getZooKeeper();
        Map<String, Peer> peers = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                say(obey(peers, words));
            } catch (Exception e) {
                say("failed " + line + ": " + e);
            }
        }
        System.exit(0);
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
            case "take":
                String body = peer.take();
                return body == null ? "none" : "item " + body;
            case "consume":
                peer.consume(false);
                return "ok";
            case "hold":
                peer.consume(true);
                return "ok";
            case "remove":
                return "removed " + peer.remove(words[2]);
            case "stop":
                peer.stop();
                return "ok";
            default:
                return "failed: unknown order " + words[0];
        }
    }
}
