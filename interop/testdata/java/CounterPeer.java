import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;

/**
 * Executes the commands of counter_test.go on Curator's counters and values. Arguments: SERVERS SESSION_MS.
 */
final class CounterPeer {
    interface Peer {
        String get() throws Exception;

        void set(String value) throws Exception;

        /** Adds and returns the new value. */
        default String add(long n) throws Exception {
            throw new UnsupportedOperationException();
        }
    }

    private static final PrintStream out = System.out;
    private static CuratorFramework client;

    static synchronized void say(String line) {
        out.println(line);
        out.flush();
    }

    static <T> T checked(AtomicValue<T> v) {
        Steps.yes(v.succeeded(), "it has not succeeded");
        return v.postValue();
    }

    static Peer open(String kind, String path) throws Exception {
        RetryNTimes policy = new RetryNTimes(Integer.MAX_VALUE, 1);
        switch (kind) {
            case "long":
                DistributedAtomicLong l = new DistributedAtomicLong(client, path, policy);
                return new Peer() {
                    @Override
                    public String get() throws Exception {
                        return checked(l.get()).toString();
                    }

                    @Override
                    public void set(String value) throws Exception {
                        l.forceSet(Long.valueOf(value));
                    }

                    @Override
                    public String add(long n) throws Exception {
                        return checked(l.add(n)).toString();
                    }
                };
            case "cached":
                CachedAtomicLong cached = new CachedAtomicLong(new DistributedAtomicLong(client, path, policy), 10);
                return new Peer() {
                    @Override
                    public String get() {
                        throw new UnsupportedOperationException();
                    }

                    @Override
                    public void set(String value) {
                        throw new UnsupportedOperationException();
                    }

                    @Override
                    public String add(long n) throws Exception {
                        return checked(cached.next()).toString();
                    }
                };
            case "int":
                DistributedAtomicInteger i = new DistributedAtomicInteger(client, path, policy);
                return new Peer() {
                    @Override
                    public String get() throws Exception {
                        return checked(i.get()).toString();
                    }

                    @Override
                    public void set(String value) throws Exception {
                        i.forceSet(Integer.valueOf(value));
                    }

                    @Override
                    public String add(long n) throws Exception {
                        return checked(i.add((int) n)).toString();
                    }
                };
            case "count":
                SharedCount count = new SharedCount(client, path, 0);
                count.start();
                return new Peer() {
                    @Override
                    public String get() {
                        return String.valueOf(count.getCount());
                    }

                    @Override
                    public void set(String value) throws Exception {
                        count.setCount(Integer.parseInt(value));
                    }

                    @Override
                    public String add(long n) throws Exception {
                        for (;;) {
                            VersionedValue<Integer> now = count.getVersionedValue();
                            int next = now.getValue() + (int) n;
                            if (count.trySetCount(now, next)) {
                                return String.valueOf(next);
                            }
                        }
                    }
                };
            default:
                SharedValue value = new SharedValue(client, path, "seed".getBytes(StandardCharsets.UTF_8));
                value.start();
                return new Peer() {
                    @Override
                    public String get() {
                        return new String(value.getValue(), StandardCharsets.UTF_8);
                    }

                    @Override
                    public void set(String text) throws Exception {
                        value.setValue(text.getBytes(StandardCharsets.UTF_8));
                    }
                };
        }
    }

    public static void main(String[] args) throws Exception {
        int session = Integer.parseInt(args[1]);
        client = CuratorFrameworkFactory.builder().connectString(args[0]).sessionTimeoutMs(session).connectionTimeoutMs(10000).retryPolicy(new RetryForever(20)).build();
        client.start();
        Steps.yes(client.blockUntilConnected(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no connection");
        Map<String, Peer> peers = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                say(obey(peers, words));
            } catch (Exception | AssertionError e) {
                say("failed " + line + ": " + e);
            }
        }
        System.exit(0);
    }

    private static String obey(Map<String, Peer> peers, String[] words) throws Exception {
        String name = words[1];
        Peer peer = peers.get(name);
        switch (words[0]) {
            case "open":
                peers.put(name, open(words[2], words[3]));
                return "ok";
            case "get":
                return peer.get();
            case "set":
                peer.set(words[2]);
                return "ok";
            case "add":
                return peer.add(Long.parseLong(words[2]));
            case "each":
                for (int i = Integer.parseInt(words[2]); i > 0; i--) {
                    say("got " + name + " " + peer.add(1));
                }
                return "ok";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
