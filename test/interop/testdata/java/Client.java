import static org.apache.zookeeper.AddWatchMode.PERSISTENT;
import static org.apache.zookeeper.AddWatchMode.PERSISTENT_RECURSIVE;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Transaction;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZKUtil;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.common.StringUtils;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Uses ZooKeeper's own Java client. */
final class Client {
    private static final List<ACL> OPEN = ZooDefs.Ids.OPEN_ACL_UNSAFE;
    static String servers;

    static final class Events implements Watcher {
        final BlockingQueue<WatchedEvent> queue = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            queue.add(event);
        }

        void expect(EventType type, String path) throws InterruptedException {
            WatchedEvent e = queue.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
            Steps.yes(e != null, "no event " + type + " of " + path);
            Steps.equal(e.getType() + " " + e.getPath(), type + " " + path);
        }

        void expectState(KeeperState state) throws InterruptedException {
            WatchedEvent e = queue.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
            Steps.yes(e != null, "no state " + state);
            Steps.equal(e.getType() + " " + e.getState(), EventType.None + " " + state);
        }
    }

    static ZooKeeper open(String chroot, int timeout, Watcher watcher) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(servers + chroot, timeout, event -> {
            if (event.getState() == KeeperState.SyncConnected && event.getType() == EventType.None) {
                connected.countDown();
            }
            if (watcher != null) {
                watcher.process(event);
            }
        });
        Steps.await(connected, "connection");
        return zk;
    }

    static ZooKeeper open() throws Exception {
        return open("", 15000, null);
    }

    static byte[] bytes(String s) {
        return s.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    static void nodes() throws Exception {
        try (ZooKeeper zk = open()) {
            Stat stat = new Stat();
            Steps.equal(zk.create("/jc", bytes("one"), OPEN, CreateMode.PERSISTENT, stat), "/jc");
            Steps.equal(stat.getDataLength(), 3);
            Steps.equal(new String(zk.getData("/jc", false, stat)), "one");
            Steps.equal(zk.setData("/jc", bytes("two"), 0).getVersion(), 1);
            Steps.fails(KeeperException.BadVersionException.class, () -> zk.setData("/jc", bytes("three"), 0));
            Steps.fails(KeeperException.NodeExistsException.class, () -> zk.create("/jc", null, OPEN, CreateMode.PERSISTENT));
            Steps.fails(KeeperException.NoNodeException.class, () -> zk.create("/jc/none/kid", null, OPEN, CreateMode.PERSISTENT));
            Steps.equal(zk.create("/jc/null", null, OPEN, CreateMode.PERSISTENT), "/jc/null");
            Steps.equal(zk.getData("/jc/null", false, null), null);
            Steps.equal(zk.create("/jc/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL), "/jc/s-0000000001");
            Steps.equal(zk.create("/jc/e-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL), "/jc/e-0000000002");
            Steps.fails(KeeperException.NoChildrenForEphemeralsException.class, () -> zk.create("/jc/e-0000000002/x", null, OPEN, CreateMode.PERSISTENT));
            Steps.equal(zk.create("/jc/c", null, OPEN, CreateMode.CONTAINER), "/jc/c");
            Stat ttl = new Stat();
            Steps.equal(zk.create("/jc/ttl", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, ttl, 3_600_000), "/jc/ttl");
            Steps.equal(ttl.getEphemeralOwner(), 0L);
            List<String> children = zk.getChildren("/jc", false, stat);
            Collections.sort(children);
            Steps.equal(children, Arrays.asList("c", "e-0000000002", "null", "s-0000000001", "ttl"));
            Steps.equal(stat.getNumChildren(), 5);
            Steps.equal(zk.getAllChildrenNumber("/jc"), 5);
            Steps.equal(zk.getEphemerals("/jc"), Arrays.asList("/jc/e-0000000002"));
            Steps.equal(zk.exists("/none", false), null);
            Steps.fails(KeeperException.NotEmptyException.class, () -> zk.delete("/jc", -1));
            Steps.fails(KeeperException.BadArgumentsException.class, () -> zk.delete("/zookeeper", -1));
            CountDownLatch synced = new CountDownLatch(1);
            zk.sync("/jc", (rc, path, ctx) -> synced.countDown(), null);
            Steps.await(synced, "answer to sync");
            Steps.yes(zk.getConfig(false, stat) != null, "no configuration");
            ZKUtil.deleteRecursive(zk, "/jc");
            Steps.equal(zk.exists("/jc", false), null);
        }
    }

    static void watches() throws Exception {
        try (ZooKeeper a = open(); ZooKeeper b = open(); ZooKeeper c = open()) {
            a.create("/jw", null, OPEN, CreateMode.PERSISTENT);
            Events once = new Events();
            b.getData("/jw", once, null);
            b.getChildren("/jw", once);
            b.exists("/jw/new", once);
            a.setData("/jw", bytes("x"), -1);
            once.expect(EventType.NodeDataChanged, "/jw");
            a.create("/jw/new", null, OPEN, CreateMode.PERSISTENT);
            once.expect(EventType.NodeCreated, "/jw/new");
            once.expect(EventType.NodeChildrenChanged, "/jw");
            Events always = new Events();
            b.addWatch("/jw/p", always, PERSISTENT);
            Events below = new Events();
            c.addWatch("/jw", below, PERSISTENT_RECURSIVE);
            a.create("/jw/p", null, OPEN, CreateMode.PERSISTENT);
            a.setData("/jw/p", bytes("1"), -1);
            a.create("/jw/p/k", null, OPEN, CreateMode.EPHEMERAL);
            a.delete("/jw/p/k", -1);
            a.delete("/jw/p", -1);
            always.expect(EventType.NodeCreated, "/jw/p");
            always.expect(EventType.NodeDataChanged, "/jw/p");
            always.expect(EventType.NodeChildrenChanged, "/jw/p");
            always.expect(EventType.NodeChildrenChanged, "/jw/p");
            always.expect(EventType.NodeDeleted, "/jw/p");
            below.expect(EventType.NodeCreated, "/jw/p");
            below.expect(EventType.NodeDataChanged, "/jw/p");
            below.expect(EventType.NodeCreated, "/jw/p/k");
            below.expect(EventType.NodeDeleted, "/jw/p/k");
            below.expect(EventType.NodeDeleted, "/jw/p");
            Events gone = new Events();
            b.getData("/jw", gone, null);
            b.removeWatches("/jw", gone, Watcher.WatcherType.Data, false);
            gone.expect(EventType.DataWatchRemoved, "/jw");
            Steps.fails(KeeperException.NoWatcherException.class, () -> b.removeWatches("/jw", gone, Watcher.WatcherType.Data, false));
            c.removeAllWatches("/jw", Watcher.WatcherType.Any, false);
            ZKUtil.deleteRecursive(a, "/jw");
        }
    }

    static void transactions() throws Exception {
        try (ZooKeeper zk = open()) {
            Transaction t = zk.transaction();
            t.create("/jt", bytes("1"), OPEN, CreateMode.PERSISTENT);
            t.create("/jt/k", null, OPEN, CreateMode.EPHEMERAL);
            t.setData("/jt", bytes("2"), 0);
            t.check("/jt", 1);
            t.delete("/jt/k", -1);
            List<OpResult> results = t.commit();
            Steps.equal(results.size(), 5);
            Steps.equal(((OpResult.CreateResult) results.get(0)).getPath(), "/jt");
            Steps.equal(((OpResult.SetDataResult) results.get(2)).getStat().getVersion(), 1);
            try {
                zk.multi(Arrays.asList(Op.setData("/jt", bytes("3"), -1), Op.check("/jt", 7), Op.delete("/jt", -1)));
                throw new AssertionError("a failing multi succeeds");
            } catch (KeeperException.BadVersionException e) {
                Steps.equal(e.getResults().size(), 3);
                Steps.equal(((OpResult.ErrorResult) e.getResults().get(0)).getErr(), 0);
                Steps.equal(((OpResult.ErrorResult) e.getResults().get(1)).getErr(), KeeperException.Code.BADVERSION.intValue());
                Steps.equal(((OpResult.ErrorResult) e.getResults().get(2)).getErr(), KeeperException.Code.RUNTIMEINCONSISTENCY.intValue());
            }
            List<OpResult> reads = zk.multi(Arrays.asList(Op.getData("/jt"), Op.getChildren("/jt"), Op.getData("/none")));
            Steps.equal(new String(((OpResult.GetDataResult) reads.get(0)).getData()), "2");
            Steps.equal(((OpResult.GetChildrenResult) reads.get(1)).getChildren(), Collections.emptyList());
            Steps.equal(((OpResult.ErrorResult) reads.get(2)).getErr(), KeeperException.Code.NONODE.intValue());
            zk.delete("/jt", -1);
        }
    }

    static void acls() throws Exception {
        try (ZooKeeper a = open(); ZooKeeper b = open()) {
            a.addAuthInfo("digest", bytes("bob:secret"));
            a.create("/ja", bytes("x"), ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            Steps.fails(KeeperException.NoAuthException.class, () -> b.getData("/ja", false, null));
            Steps.fails(KeeperException.NoAuthException.class, () -> b.setData("/ja", null, -1));
            Steps.fails(KeeperException.InvalidACLException.class, () -> b.create("/jb", null, ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
            b.addAuthInfo("digest", bytes("bob:secret"));
            Steps.equal(new String(b.getData("/ja", false, null)), "x");
            Stat stat = new Stat();
            List<ACL> list = b.getACL("/ja", stat);
            Steps.equal(list.size(), 1);
            Steps.equal(list.get(0).getId().getScheme(), "digest");
            a.setACL("/ja", Arrays.asList(new ACL(ZooDefs.Perms.READ, new Id("world", "anyone")), new ACL(ZooDefs.Perms.ALL, new Id("ip", "127.0.0.1"))), 0);
            try (ZooKeeper c = open()) {
                c.setData("/ja", bytes("y"), -1);
                List<ClientInfo> who = c.whoAmI();
                Steps.equal(who.get(0).getAuthScheme(), "ip");
            }
            Events events = new Events();
            ZooKeeper bad = open("", 15000, events);
            bad.addAuthInfo("nosuchscheme", bytes("x"));
            Steps.until("AUTH_FAILED", () -> bad.getState() == ZooKeeper.States.AUTH_FAILED);
            bad.close();
            a.delete("/ja", -1);
        }
    }

    static void sessions() throws Exception {
        try (ZooKeeper a = open()) {
            a.create("/js", null, OPEN, CreateMode.PERSISTENT);
            Events events = new Events();
            ZooKeeper b = open("", 15000, events);
            events.expectState(KeeperState.SyncConnected);
            b.create("/js/e", null, OPEN, CreateMode.EPHEMERAL);
            b.getData("/js", event -> { }, null);
            // Two handles of one session take it over from each other, again and again.
            CountDownLatch up = new CountDownLatch(1);
            ZooKeeper twin = new ZooKeeper(servers, 15000, event -> {
                if (event.getState() == KeeperState.SyncConnected) {
                    up.countDown();
                }
            }, b.getSessionId(), b.getSessionPasswd());
            Steps.await(up, "connection of the twin");
            Steps.equal(twin.getSessionId(), b.getSessionId());
            Events gone = new Events();
            Steps.yes(a.exists("/js/e", gone) != null, "the ephemeral went with the take-over");
            twin.close(); // it also ends the session
            gone.expect(EventType.NodeDeleted, "/js/e");
            Steps.until("expired", () -> {
                try {
                    b.exists("/js", false);
                    return false;
                } catch (KeeperException.SessionExpiredException e) {
                    return true;
                } catch (KeeperException.ConnectionLossException e) {
                    return false;
                }
            });
            b.close();
            a.delete("/js", -1);
        }
    }

    static void chroot() throws Exception {
        try (ZooKeeper root = open()) {
            root.create("/jroot", null, OPEN, CreateMode.PERSISTENT);
            try (ZooKeeper zk = open("/jroot", 15000, null)) {
                Events events = new Events();
                zk.exists("/x", events);
                Steps.equal(zk.create("/x", null, OPEN, CreateMode.PERSISTENT), "/x");
                events.expect(EventType.NodeCreated, "/x");
                Steps.equal(zk.getChildren("/", false), Arrays.asList("x"));
                Steps.equal(zk.multi(Arrays.asList(Op.create("/y", null, OPEN, CreateMode.PERSISTENT))).size(), 1);
            }
            Steps.yes(root.exists("/jroot/x", false) != null, "the chroot is not a prefix");
            ZKUtil.deleteRecursive(root, "/jroot");
        }
    }

    static void pipeline() throws Exception {
        try (ZooKeeper zk = open()) {
            zk.create("/jp", null, OPEN, CreateMode.PERSISTENT);
            int n = 2000;
            CountDownLatch done = new CountDownLatch(n);
            List<String> names = Collections.synchronizedList(new ArrayList<>());
            AsyncCallback.StringCallback callback = (rc, path, ctx, name) -> {
                names.add(name);
                done.countDown();
            };
            for (int i = 0; i < n; i++) {
                zk.create("/jp/n-", bytes(StringUtils.joinStrings(Arrays.asList("a", "b"), ",")), OPEN, CreateMode.PERSISTENT_SEQUENTIAL, callback, null);
            }
            Steps.await(done, "answer to each create");
            List<String> sorted = new ArrayList<>(names);
            Collections.sort(sorted);
            Steps.equal(names, sorted);
            Steps.equal(zk.getChildren("/jp", false).size(), n);
            Steps.yes(ZKUtil.deleteRecursive(zk, "/jp", 100), "not all deleted");
        }
    }

    static void large() throws Exception {
        try (ZooKeeper zk = open()) {
            byte[] data = new byte[1_000_000];
            Arrays.fill(data, (byte) 7);
            zk.create("/jl", data, OPEN, CreateMode.PERSISTENT);
            Steps.yes(Arrays.equals(zk.getData("/jl", false, null), data), "data is not the same");
            Steps.fails(KeeperException.ConnectionLossException.class, () -> zk.setData("/jl", new byte[1_100_000], -1));
            Steps.until("connected again", () -> {
                try {
                    return zk.exists("/jl", false).getVersion() == 0;
                } catch (KeeperException.ConnectionLossException e) {
                    return false;
                }
            });
            zk.delete("/jl", -1);
        }
    }

    public static void main(String[] args) {
        servers = args[0];
        Steps steps = new Steps();
        steps.add("nodes", Client::nodes);
        steps.add("watches", Client::watches);
        steps.add("transactions", Client::transactions);
        steps.add("acls", Client::acls);
        steps.add("sessions", Client::sessions);
        steps.add("chroot", Client::chroot);
        steps.add("pipeline", Client::pipeline);
        steps.add("large", Client::large);
        steps.runAll(Arrays.copyOfRange(args, 1, args.length));
    }
}
