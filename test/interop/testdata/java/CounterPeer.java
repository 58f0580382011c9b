import java.util.HashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
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

    private static CuratorFramework client;

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
                SharedValue value = new SharedValue(client, path, Orders.bytes("seed"));
                value.start();
                return new Peer() {
                    @Override
                    public String get() {
                        return Orders.text(value.getValue());
                    }

                    @Override
                    public void set(String text) throws Exception {
                        value.setValue(Orders.bytes(text));
                    }
                };
        }
    }

    public static void main(String[] args) throws Exception {
        client = Orders.connect(args[0], Integer.parseInt(args[1]));
        Map<String, Peer> peers = new HashMap<>();
        Orders.follow(words -> obey(peers, words));
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
                    Orders.say("got " + name + " " + peer.add(1));
                }
                return "ok";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
