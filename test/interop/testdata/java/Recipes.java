import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Uses Curator's framework and each of its recipes with several clients, and through the loss of sessions. */
final class Recipes {
    static String servers;

    static CuratorFramework open() throws Exception {
        return open(10000);
    }

    static CuratorFramework open(int sessionMs) throws Exception {
        return Orders.connect(servers, sessionMs);
    }

    /** Ends a client's session as Curator's own tests do: another handle takes it over and closes it. */
    static void killSession(CuratorFramework c) throws Exception {
        ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
        CountDownLatch up = new CountDownLatch(1);
        ZooKeeper twin = new ZooKeeper(servers, 10000, event -> up.countDown(), zk.getSessionId(), zk.getSessionPasswd());
        Steps.await(up, "take-over of the session");
        twin.close();
    }

    static void framework() throws Exception {
        try (CuratorFramework c = open()) {
            Steps.equal(c.create().creatingParentsIfNeeded().forPath("/cf/a/b", "x".getBytes()), "/cf/a/b");
            Steps.equal(c.create().creatingParentContainersIfNeeded().forPath("/cfc/a/b"), "/cfc/a/b");
            String own = c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/cf/p-");
            Steps.yes(own.matches("/cf/_c_[0-9a-f-]{36}-p-0000000001"), own);
            c.create().orSetData().forPath("/cf/a/b", "y".getBytes());
            Steps.equal(new String(c.getData().forPath("/cf/a/b")), "y");
            c.setData().compressed().forPath("/cf/a/b", new byte[10000]);
            Steps.equal(c.getData().decompressed().forPath("/cf/a/b").length, 10000);
            c.delete().quietly().forPath("/cf/none");
            Steps.fails(KeeperException.NoNodeException.class, () -> c.setData().forPath("/cf/none"));
            Collection<CuratorTransactionResult> results = c.transaction().forOperations(c.transactionOp().create().forPath("/cf/t"), c.transactionOp().setData().forPath("/cf/t", "z".getBytes()), c.transactionOp().check().withVersion(1).forPath("/cf/t"), c.transactionOp().delete().forPath("/cf/t"));
            Steps.equal(results.size(), 4);
            CountDownLatch done = new CountDownLatch(100);
            for (int i = 0; i < 100; i++) {
                c.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).inBackground((client, event) -> done.countDown()).forPath("/cf/bg-");
            }
            Steps.await(done, "background answers");
            CountDownLatch seen = new CountDownLatch(1);
            c.getChildren().usingWatcher((org.apache.curator.framework.api.CuratorWatcher) event -> seen.countDown()).forPath("/cf");
            c.create().withTtl(60000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/cf/ttl");
            Steps.await(seen, "watch");
            c.usingNamespace("cns").create().forPath("/x");
            Steps.yes(c.checkExists().forPath("/cns/x") != null, "no namespace");
            Steps.equal(c.getACL().forPath("/cf").get(0).getPerms(), ZooDefs.Perms.ALL);
            c.sync().forPath("/cf");
            c.delete().guaranteed().deletingChildrenIfNeeded().forPath("/cf");
        }
    }

    /** Several threads of several clients take the lock in turn, and must never be inside together. */
    static void exclusive(List<InterProcessLock> locks) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger count = new AtomicInteger();
        List<Future<?>> all = new ArrayList<>();
        ExecutorService pool = Executors.newCachedThreadPool();
        for (InterProcessLock lock : locks) {
            all.add(pool.submit(() -> {
                for (int i = 0; i < 10; i++) {
                    Steps.yes(lock.acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "lock not acquired");
                    Steps.equal(inside.incrementAndGet(), 1);
                    count.incrementAndGet();
                    inside.decrementAndGet();
                    lock.release();
                }
                return null;
            }));
        }
        for (Future<?> f : all) {
            f.get();
        }
        pool.shutdown();
        Steps.equal(count.get(), 10 * locks.size());
    }

    static void mutex() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            List<InterProcessLock> locks = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                locks.add(new InterProcessMutex(i % 2 == 0 ? a : b, "/cm/lock"));
            }
            exclusive(locks);
            InterProcessMutex first = new InterProcessMutex(a, "/cm/lock");
            InterProcessMutex second = new InterProcessMutex(b, "/cm/lock");
            CountDownLatch revoked = new CountDownLatch(1);
            second.makeRevocable(lock -> revoked.countDown()); // before it acquires
            first.acquire();
            first.acquire(); // reentrant
            Steps.yes(!second.acquire(50, TimeUnit.MILLISECONDS), "two holders");
            first.release();
            Steps.yes(!second.acquire(0, TimeUnit.MILLISECONDS), "two holders");
            Steps.equal(first.getParticipantNodes().size(), 1);
            killSession(a);
            Steps.yes(second.acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "the lock survives its holder's session");
            Steps.until("reconnected", () -> a.checkExists().forPath("/cm") != null);
            Revoker.attemptRevoke(a, second.getParticipantNodes().iterator().next());
            Steps.await(revoked, "revocation");
            second.release();
            // The lock's node is a container, which the server deletes when it is empty.
            Steps.until("collected", () -> a.checkExists().forPath("/cm/lock") == null);
        }
    }

    static void semaphoreMutexAndMultiLock() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            exclusive(Arrays.asList(new InterProcessSemaphoreMutex(a, "/csm"), new InterProcessSemaphoreMutex(b, "/csm")));
            exclusive(Arrays.asList(new InterProcessMultiLock(a, Arrays.asList("/cml/a", "/cml/b")), new InterProcessMultiLock(b, Arrays.asList("/cml/a", "/cml/b"))));
        }
    }

    static void readWriteLock() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            InterProcessReadWriteLock la = new InterProcessReadWriteLock(a, "/crw");
            InterProcessReadWriteLock lb = new InterProcessReadWriteLock(b, "/crw");
            la.readLock().acquire();
            Steps.yes(lb.readLock().acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "readers do not share");
            Steps.yes(!lb.writeLock().acquire(50, TimeUnit.MILLISECONDS), "a writer beside readers");
            lb.readLock().release();
            la.readLock().release();
            la.writeLock().acquire();
            la.readLock().acquire(); // downgrade
            Steps.yes(!lb.readLock().acquire(50, TimeUnit.MILLISECONDS), "a reader beside a writer");
            la.writeLock().release();
            Steps.yes(lb.readLock().acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no reader after the downgrade");
            lb.readLock().release();
            la.readLock().release();
        }
    }

    static void semaphore() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            InterProcessSemaphoreV2 sa = new InterProcessSemaphoreV2(a, "/cs", 3);
            InterProcessSemaphoreV2 sb = new InterProcessSemaphoreV2(b, "/cs", 3);
            Collection<Lease> two = sa.acquire(2);
            Lease third = sb.acquire();
            Steps.equal(sb.acquire(50, TimeUnit.MILLISECONDS), null);
            Steps.equal(sa.getParticipantNodes().size(), 3);
            sa.returnAll(two);
            Lease fourth = sb.acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
            Steps.yes(fourth != null, "no lease after the return");
            sb.returnLease(third);
            sb.returnLease(fourth);
            try (SharedCount limit = new SharedCount(a, "/cslimit", 1)) {
                limit.start();
                InterProcessSemaphoreV2 counted = new InterProcessSemaphoreV2(a, "/csc", limit);
                Lease one = counted.acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
                Steps.equal(counted.acquire(50, TimeUnit.MILLISECONDS), null);
                limit.setCount(2);
                Lease more = counted.acquire(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
                Steps.yes(more != null, "the larger limit does not let in");
                counted.returnLease(one);
                counted.returnLease(more);
            }
        }
    }

    static void leaderLatch() throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        List<LeaderLatch> latches = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            CuratorFramework c = open();
            LeaderLatch latch = new LeaderLatch(c, "/cll", "id" + i);
            clients.add(c);
            latches.add(latch);
            latch.start();
            int want = i + 1;
            Steps.until("a participant", () -> latch.getParticipants().size() == want);
        }
        Steps.yes(latches.get(0).await(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no leader");
        Steps.equal(latches.get(3).getLeader().getId(), "id0");
        latches.get(0).close();
        Steps.yes(latches.get(1).await(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no second leader");
        killSession(clients.get(1));
        Steps.yes(latches.get(2).await(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no third leader");
        Steps.until("no leader any more", () -> !latches.get(1).hasLeadership());
        Steps.until("in line again", () -> latches.get(3).getParticipants().size() == 3);
        for (int i = 1; i < 4; i++) {
            latches.get(i).close();
        }
        clients.forEach(CuratorFramework::close);
    }

    static void leaderSelector() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            AtomicInteger leaders = new AtomicInteger();
            CountDownLatch turns = new CountDownLatch(6);
            LeaderSelectorListenerAdapter listener = new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    Steps.equal(leaders.incrementAndGet(), 1);
                    leaders.decrementAndGet();
                    turns.countDown();
                }
            };
            LeaderSelector sa = new LeaderSelector(a, "/cse", listener);
            LeaderSelector sb = new LeaderSelector(b, "/cse", listener);
            for (LeaderSelector s : Arrays.asList(sa, sb)) {
                s.setId("x");
                s.autoRequeue();
                s.start();
            }
            Steps.await(turns, "six turns");
            sa.close();
            sb.close();
        }
    }

    static void curatorCache() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open(); CuratorCache cache = CuratorCache.build(b, "/cc")) {
            BlockingQueue<String> events = new LinkedBlockingQueue<>();
            CountDownLatch ready = new CountDownLatch(1);
            a.create().forPath("/cc", "root".getBytes());
            cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).forAll((type, before, after) -> events.add(type + " " + (after == null ? before : after).getPath())).build());
            cache.start();
            Steps.await(ready, "cache");
            Steps.equal(events.poll(1, TimeUnit.SECONDS), "NODE_CREATED /cc");
            a.create().forPath("/cc/x", "1".getBytes());
            Steps.equal(events.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "NODE_CREATED /cc/x");
            a.setData().forPath("/cc/x", "2".getBytes());
            Steps.equal(events.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "NODE_CHANGED /cc/x");
            Steps.equal(new String(cache.get("/cc/x").get().getData()), "2");
            killSession(b);
            a.create().forPath("/cc/y", "1".getBytes());
            a.setData().forPath("/cc/x", "3".getBytes());
            Steps.until("caught up", () -> cache.get("/cc/y").isPresent() && new String(cache.get("/cc/x").get().getData()).equals("3"));
            a.delete().deletingChildrenIfNeeded().forPath("/cc");
            Steps.until("empty", () -> cache.stream().count() == 0);
        }
    }

    @SuppressWarnings("deprecation")
    static void oldCaches() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            a.create().creatingParentsIfNeeded().forPath("/co/kids/a", "1".getBytes());
            try (PathChildrenCache kids = new PathChildrenCache(b, "/co/kids", true); NodeCache node = new NodeCache(b, "/co/kids/a"); TreeCache tree = new TreeCache(b, "/co")) {
                kids.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
                node.start(true);
                tree.start();
                Steps.equal(kids.getCurrentData().size(), 1);
                a.create().forPath("/co/kids/b", "2".getBytes());
                a.setData().forPath("/co/kids/a", "3".getBytes());
                Steps.until("children", () -> kids.getCurrentData().size() == 2);
                Steps.until("node", () -> new String(node.getCurrentData().getData()).equals("3"));
                Steps.until("tree", () -> tree.getCurrentChildren("/co/kids") != null && tree.getCurrentChildren("/co/kids").size() == 2);
                a.delete().deletingChildrenIfNeeded().forPath("/co/kids");
                Steps.until("no node", () -> node.getCurrentData() == null);
                Steps.until("no tree", () -> tree.getCurrentData("/co/kids/a") == null && tree.getCurrentData("/co/kids/b") == null);
            }
        }
    }

    static void barriers() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            DistributedBarrier barrier = new DistributedBarrier(a, "/cb");
            barrier.setBarrier();
            Steps.yes(!new DistributedBarrier(b, "/cb").waitOnBarrier(50, TimeUnit.MILLISECONDS), "no barrier");
            ExecutorService pool = Executors.newCachedThreadPool();
            Future<Boolean> waiting = pool.submit(() -> new DistributedBarrier(b, "/cb").waitOnBarrier(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS));
            barrier.removeBarrier();
            Steps.equal(waiting.get(), true);
            List<Future<?>> all = new ArrayList<>();
            AtomicInteger in = new AtomicInteger();
            for (int i = 0; i < 4; i++) {
                CuratorFramework c = i % 2 == 0 ? a : b;
                all.add(pool.submit(() -> {
                    DistributedDoubleBarrier db = new DistributedDoubleBarrier(c, "/cdb", 4);
                    in.incrementAndGet();
                    Steps.yes(db.enter(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not entered");
                    Steps.equal(in.get(), 4);
                    Steps.yes(db.leave(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not left");
                    return null;
                }));
            }
            for (Future<?> f : all) {
                f.get();
            }
            pool.shutdown();
        }
    }

    static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes();
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes);
        }
    };

    static QueueConsumer<String> into(BlockingQueue<String> out) {
        return new QueueConsumer<String>() {
            @Override
            public void consumeMessage(String message) {
                out.add(message);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        };
    }

    static void expectAll(BlockingQueue<String> out, String... want) throws Exception {
        List<String> got = new ArrayList<>();
        for (int i = 0; i < want.length; i++) {
            got.add(out.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS));
        }
        Steps.equal(got, Arrays.asList(want));
    }

    static void queues() throws Exception {
        try (CuratorFramework a = open()) {
            BlockingQueue<String> out = new LinkedBlockingQueue<>();
            try (DistributedQueue<String> q = QueueBuilder.builder(a, into(out), TEXT, "/cq").lockPath("/cqlock").buildQueue()) {
                q.start();
                for (int i = 0; i < 20; i++) {
                    q.put("item" + i);
                }
                for (int i = 0; i < 20; i++) {
                    Steps.equal(out.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "item" + i);
                }
            }
            DistributedPriorityQueue<String> put = QueueBuilder.builder(a, null, TEXT, "/cpq").buildPriorityQueue(0);
            put.start();
            put.put("low", 9);
            put.put("high", 1);
            put.put("middle", 5);
            put.flushPuts(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS);
            try (DistributedPriorityQueue<String> q = QueueBuilder.builder(a, into(out), TEXT, "/cpq").buildPriorityQueue(0)) {
                q.start();
                expectAll(out, "high", "middle", "low");
            }
            put.close();
            try (DistributedDelayQueue<String> q = QueueBuilder.builder(a, into(out), TEXT, "/cdq").buildDelayQueue()) {
                q.start();
                long now = System.currentTimeMillis();
                q.put("later", now + 300);
                q.put("sooner", now + 100);
                expectAll(out, "sooner", "later");
            }
            SimpleDistributedQueue simple = new SimpleDistributedQueue(a, "/csq");
            Steps.yes(simple.offer("1".getBytes()), "no offer");
            Steps.yes(simple.offer("2".getBytes()), "no offer");
            Steps.equal(new String(simple.peek()), "1");
            Steps.equal(new String(simple.take()), "1");
            Steps.equal(new String(simple.poll(1, TimeUnit.SECONDS)), "2");
            Steps.equal(simple.poll(), null);
        }
    }

    static void counters() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open(); SharedCount ca = new SharedCount(a, "/ccount", 7); SharedCount cb = new SharedCount(b, "/ccount", 7)) {
            ca.start();
            cb.start();
            Steps.equal(cb.getCount(), 7);
            ca.setCount(8);
            Steps.until("told", () -> cb.getCount() == 8);
            Steps.yes(cb.trySetCount(cb.getVersionedValue(), 9), "not set");
            try (SharedValue v = new SharedValue(a, "/cvalue", "x".getBytes())) {
                v.start();
                v.setValue("y".getBytes());
                Steps.equal(new String(b.getData().forPath("/cvalue")), "y");
            }
            List<Future<?>> all = new ArrayList<>();
            ExecutorService pool = Executors.newCachedThreadPool();
            for (CuratorFramework c : Arrays.asList(a, b)) {
                DistributedAtomicLong n = new DistributedAtomicLong(c, "/clong", new org.apache.curator.retry.RetryNTimes(1000, 2));
                all.add(pool.submit(() -> {
                    for (int i = 0; i < 25; i++) {
                        Steps.yes(n.increment().succeeded(), "not incremented");
                    }
                    return null;
                }));
            }
            for (Future<?> f : all) {
                f.get();
            }
            pool.shutdown();
            Steps.equal(new DistributedAtomicLong(a, "/clong", new RetryOneTime(1)).get().postValue(), 50L);
        }
    }

    static void nodes() throws Exception {
        try (CuratorFramework a = open(); CuratorFramework b = open()) {
            try (PersistentNode node = new PersistentNode(a, CreateMode.EPHEMERAL, false, "/cn/here", "x".getBytes())) {
                node.start();
                Steps.yes(node.waitForInitialCreate(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not created");
                b.delete().forPath("/cn/here");
                Steps.until("created again", () -> b.checkExists().forPath("/cn/here") != null);
                killSession(a);
                Steps.until("created by the next session", () -> {
                    org.apache.zookeeper.data.Stat stat = b.checkExists().forPath("/cn/here");
                    return stat != null && stat.getEphemeralOwner() == a.getZookeeperClient().getZooKeeper().getSessionId();
                });
                node.setData("y".getBytes());
                Steps.until("changed", () -> new String(b.getData().forPath("/cn/here")).equals("y"));
            }
            try (PersistentTtlNode node = new PersistentTtlNode(a, "/cttl", 300, "x".getBytes())) {
                node.start();
                Steps.yes(node.waitForInitialCreate(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "not created");
                Steps.until("touched", () -> !b.getChildren().forPath("/cttl").isEmpty()); // the server deletes only containers that had a child
            }
            Steps.until("gone by its time", () -> b.checkExists().forPath("/cttl") == null);
            try (GroupMember ga = new GroupMember(a, "/cg", "a"); GroupMember gb = new GroupMember(b, "/cg", "b", "data".getBytes())) {
                ga.start();
                gb.start();
                Steps.until("both members", () -> ga.getCurrentMembers().size() == 2 && gb.getCurrentMembers().size() == 2);
                Steps.equal(new String(ga.getCurrentMembers().get("b")), "data");
                gb.close();
                Steps.until("one member", () -> ga.getCurrentMembers().size() == 1);
            }
            try (PersistentWatcher w = new PersistentWatcher(b, "/cw", true)) {
                BlockingQueue<EventType> seen = new LinkedBlockingQueue<>();
                CountDownLatch set = new CountDownLatch(1);
                w.getResetListenable().addListener(set::countDown);
                w.getListenable().addListener(event -> {
                    if (event.getType() != EventType.None) {
                        seen.add(event.getType());
                    }
                });
                w.start();
                Steps.await(set, "watcher");
                a.create().creatingParentsIfNeeded().forPath("/cw/deep/er");
                a.delete().deletingChildrenIfNeeded().forPath("/cw");
                for (EventType want : Arrays.asList(EventType.NodeCreated, EventType.NodeCreated, EventType.NodeCreated, EventType.NodeDeleted, EventType.NodeDeleted, EventType.NodeDeleted)) {
                    Steps.equal(seen.poll(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), want);
                }
            }
        }
    }

    public static void main(String[] args) {
        servers = args[0];
        Steps steps = new Steps();
        steps.add("framework", Recipes::framework);
        steps.add("mutex", Recipes::mutex);
        steps.add("semaphoreMutexAndMultiLock", Recipes::semaphoreMutexAndMultiLock);
        steps.add("readWriteLock", Recipes::readWriteLock);
        steps.add("semaphore", Recipes::semaphore);
        steps.add("leaderLatch", Recipes::leaderLatch);
        steps.add("leaderSelector", Recipes::leaderSelector);
        steps.add("curatorCache", Recipes::curatorCache);
        steps.add("oldCaches", Recipes::oldCaches);
        steps.add("barriers", Recipes::barriers);
        steps.add("queues", Recipes::queues);
        steps.add("counters", Recipes::counters);
        steps.add("nodes", Recipes::nodes);
        steps.runAll(Arrays.copyOfRange(args, 1, args.length));
    }
}
