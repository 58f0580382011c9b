import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;

/** Runs the Java code of docs/migrating-curator*.md, each method once. */
final class Migrating {
    private static int worked;
    private static volatile boolean applied;
    private static final BlockingQueue<String> consumed = new LinkedBlockingQueue<>();

    private static void work() {
        worked++;
    }

    private static void apply(ChildData after) {
        applied = true;
    }

    private static CuratorFramework connect(String servers) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers, new ExponentialBackoffRetry(1000, 3));
        client.start();
        return client;
    }

    private static void lock(CuratorFramework client) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(client, "/locks/report");
        lock.acquire();
        try { work(); } finally { lock.release(); }
    }

    private static void readWrite(CuratorFramework client) throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, "/locks/data");
        lock.readLock().acquire();
        try { work(); } finally { lock.readLock().release(); }
    }

    private static void semaphore(CuratorFramework client) throws Exception {
        InterProcessSemaphoreV2 gpus = new InterProcessSemaphoreV2(client, "/pools/gpu", 8);
        Lease lease = gpus.acquire();
        try { work(); } finally { gpus.returnLease(lease); }
    }

    private static void lead(CuratorFramework client) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, "/app/leader", "host-1");
        latch.start();
        latch.await();
        try { work(); } finally { latch.close(); } // has to ask hasLeadership itself
    }

    private static void queue(CuratorFramework client) throws Exception {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, "/mail");
        queue.offer("to: ann".getBytes());
        byte[] item = queue.take(); // lost if this program dies now
        Steps.equal(new String(item), "to: ann");
    }

    private static void orders(
        CuratorFramework client, QueueConsumer<String> consumer, QueueSerializer<String> serializer) throws Exception {
        DistributedQueue<String> orders =
            QueueBuilder.builder(client, consumer, serializer, "/orders").lockPath("/orders-locks").buildQueue();
        orders.start();
        orders.put("order 42");
        Steps.until("consumed", () -> !consumed.isEmpty());
        orders.close();
    }

    private static void meet(CuratorFramework client) throws Exception {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, "/app/start", 1);
        barrier.enter();
        work();
        barrier.leave();
    }

    private static void count(CuratorFramework client) throws Exception {
        DistributedAtomicLong visits = new DistributedAtomicLong(client, "/visits", new RetryNTimes(10, 100));
        AtomicValue<Long> n = visits.increment();
        if (!n.succeeded()) { throw new IllegalStateException("not counted, or perhaps it was"); }
        Steps.equal(n.postValue(), 1L);
    }

    private static void level(CuratorFramework client) throws Exception {
        SharedCount level = new SharedCount(client, "/level", 0);
        level.start();
        boolean set = level.trySetCount(level.getVersionedValue(), level.getCount() + 1);
        Steps.yes(set, "not set");
        level.close();
    }

    private static void follow(CuratorFramework client) throws Exception {
        client.create().forPath("/config");
        CuratorCache cache = CuratorCache.build(client, "/config");
        cache.listenable().addListener((type, before, after) -> apply(after));
        cache.start();
        Steps.until("told of the node", () -> applied);
        cache.close();
    }

    private static void children(CuratorFramework client) throws Exception {
        applied = false;
        client.create().forPath("/config/color");
        PathChildrenCache children = new PathChildrenCache(client, "/config", true);
        children.getListenable().addListener((c, event) -> apply(event.getData()));
        children.start();
        Steps.until("told of the child", () -> applied);
        children.close();
    }

    private static void join(CuratorFramework client) throws Exception {
        GroupMember member = new GroupMember(client, "/workers", "host-1", "10.0.0.1:8080".getBytes());
        member.start();
        int members = member.getCurrentMembers().size();
        Steps.equal(members, 1);
        member.close();
    }

    private static void services(CuratorFramework client) throws Exception {
        ServiceInstance<Void> users =
            ServiceInstance.<Void>builder().name("users").address("10.0.0.1").port(8080).build();
        ServiceDiscovery<Void> discovery =
            ServiceDiscoveryBuilder.builder(Void.class).client(client).basePath("/services").thisInstance(users).build();
        discovery.start();
        ServiceProvider<Void> provider = discovery.serviceProviderBuilder().serviceName("users").build();
        provider.start();
        ServiceInstance<Void> use = provider.getInstance(); // null if there is none
        Steps.equal(use.getPort(), 8080);
        provider.close();
        discovery.close();
    }

    public static void main(String[] args) throws Exception {
        try (CuratorFramework root = connect(args[0])) {
            Steps.yes(root.blockUntilConnected(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no connection");
            // These are used more than once, and must not go in between: Curator fails if an empty container is deleted
            // while it creates what is missing below it.
            for (String path : new String[] {"/java/app", "/java/locks"}) {
                root.create().creatingParentsIfNeeded().forPath(path);
            }
            CuratorFramework client = root.usingNamespace("java");
            lock(client);
            readWrite(client);
            semaphore(client);
            lead(client);
            queue(client);
            orders(client, Recipes.into(consumed), Recipes.TEXT);
            meet(client);
            count(client);
            level(client);
            follow(client);
            children(client);
            join(client);
            services(client);
        }
        Steps.equal(worked, 5);
        System.exit(0); // threads of Curator's may still run
    }
}
