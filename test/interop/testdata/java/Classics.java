import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.lock.WriteLock;
import org.apache.zookeeper.recipes.queue.DistributedQueue;

/** The recipes of ZooKeeper itself. */
final class Classics {
    static void writeLock() throws Exception {
        List<ZooKeeper> clients = new ArrayList<>();
        List<WriteLock> locks = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            ZooKeeper zk = Client.open();
            if (i == 0) {
                zk.create("/wl", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            }
            WriteLock lock = new WriteLock(zk, "/wl", null);
            lock.lock();
            clients.add(zk);
            locks.add(lock);
        }
        for (int i = 0; i < 3; i++) {
            WriteLock lock = locks.get(i);
            Steps.until("owner " + i, lock::isOwner);
            for (int j = i + 1; j < 3; j++) {
                Steps.yes(!locks.get(j).isOwner(), "two owners");
            }
            lock.unlock();
        }
        for (ZooKeeper zk : clients) {
            zk.close();
        }
    }

    static void queue() throws Exception {
        try (ZooKeeper a = Client.open(); ZooKeeper b = Client.open()) {
            // Its clients race to create the directory, and all but one fail.
            a.create("/dq", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            DistributedQueue in = new DistributedQueue(a, "/dq", null);
            DistributedQueue out = new DistributedQueue(b, "/dq", null);
            ExecutorService pool = Executors.newSingleThreadExecutor();
            Future<byte[]> taken = pool.submit(out::take);
            for (int i = 0; i < 10; i++) {
                in.offer(Client.bytes("item" + i));
            }
            Steps.equal(new String(taken.get(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS)), "item0");
            Steps.equal(new String(out.element()), "item1");
            Steps.equal(new String(out.remove()), "item1");
            Steps.equal(new String(out.poll()), "item2");
            pool.shutdown();
        }
    }

    static void election() throws Exception {
        try (ZooKeeper setup = Client.open()) {
            setup.create("/el", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            List<ZooKeeper> clients = new ArrayList<>();
            List<LeaderElectionSupport> all = new ArrayList<>();
            AtomicInteger elected = new AtomicInteger();
            for (int i = 0; i < 3; i++) {
                ZooKeeper zk = Client.open();
                LeaderElectionSupport e = new LeaderElectionSupport();
                e.setZooKeeper(zk);
                e.setRootNodeName("/el");
                e.setHostName("host" + i);
                e.addListener(type -> {
                    if (type == LeaderElectionSupport.EventType.ELECTED_COMPLETE) {
                        elected.incrementAndGet();
                    }
                });
                e.start();
                clients.add(zk);
                all.add(e);
            }
            for (int i = 0; i < 3; i++) {
                int want = i + 1;
                Steps.until("leader " + i, () -> elected.get() == want);
                Steps.equal(all.get(2).getLeaderHostName(), "host" + i);
                if (i < 2) {
                    all.get(i).stop();
                }
            }
            all.get(2).stop();
            for (ZooKeeper zk : clients) {
                zk.close();
            }
            Steps.equal(setup.getChildren("/el", false), Collections.emptyList());
        }
    }

    public static void main(String[] args) {
        Client.servers = args[0];
        Steps steps = new Steps();
        steps.add("writeLock", Classics::writeLock);
        steps.add("queue", Classics::queue);
        steps.add("election", Classics::election);
        steps.runAll(Arrays.copyOfRange(args, 1, args.length));
    }
}
