import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport.EventType;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * Runs contenders with recipes of Curator and of ZooKeeper itself until the referee dismisses them all.
 * Arguments: SERVERS REFEREE PARTY PATH KIND SESSION_MS CONTENDERS PERMITS; referee_test.go has the protocol.
 */
final class Worker {
    /** The connection to the referee. */
    private static final class Door {
        private final BufferedReader answers;
        private final OutputStream lines;

        Door(String address, String party) throws IOException {
            int colon = address.lastIndexOf(':');
            Socket socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
            socket.setTcpNoDelay(true);
            answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            lines = socket.getOutputStream();
            send("hello " + party);
        }

        private void send(String line) throws IOException {
            lines.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
        }

        private String ask(String line) throws IOException {
            send(line);
            String answer = answers.readLine();
            if (answer == null) {
                throw new IOException("the referee is gone");
            }
            return answer;
        }

        /** Enters and leaves, and returns whether to finish. */
        boolean visit(int weight) throws IOException {
            ask("enter " + weight);
            return ask("leave").equals("bye");
        }
    }

    private interface Contender {
        void contend(Door door) throws Exception;
    }

    private static int session;
    private static int permits;
    private static boolean writersAlone;
    private static int fixedWeight;

    public static void main(String[] args) throws Exception {
        Recipes.servers = args[0];
        session = Integer.parseInt(args[5]);
        permits = Integer.parseInt(args[7]);
        String[] what = args[4].split(":");
        String kind = what[0];
        String option = what.length > 1 ? what[1] : "";
        writersAlone = option.equals("write");
        fixedWeight = kind.equals("semaphore") && !option.isEmpty() ? Integer.parseInt(option) : 0;
        Thread[] all = new Thread[Integer.parseInt(args[6])];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Thread(() -> {
                try {
                    contender(kind, args[3]).contend(new Door(args[1], args[2]));
                } catch (Throwable t) {
                    t.printStackTrace();
                    System.exit(1);
                }
            });
            all[i].start();
        }
        for (Thread t : all) {
            t.join();
        }
        System.exit(0);
    }

    private static Contender contender(String kind, String path) {
        switch (kind) {
            case "mutex":
                return door -> mutex(door, path);
            case "semaphoremutex":
                return door -> semaphoreMutex(door, path);
            case "rwlock":
                return door -> rwlock(door, path);
            case "semaphore":
                return door -> semaphore(door, path);
            case "latch":
                return door -> latch(door, path);
            case "selector":
                return door -> selector(door, path);
            case "writelock":
                return door -> writelock(door, path);
            case "support":
                return door -> support(door, path);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void mutex(Door door, String path) throws Exception {
        try (CuratorFramework c = Recipes.open(session)) {
            InterProcessMutex mutex = new InterProcessMutex(c, path);
            for (boolean end = false; !end; mutex.release()) {
                mutex.acquire();
                end = door.visit(1);
            }
        }
    }

    private static void semaphoreMutex(Door door, String path) throws Exception {
        try (CuratorFramework c = Recipes.open(session)) {
            InterProcessSemaphoreMutex mutex = new InterProcessSemaphoreMutex(c, path);
            for (boolean end = false; !end; mutex.release()) {
                mutex.acquire();
                end = door.visit(1);
            }
        }
    }

    private static void rwlock(Door door, String path) throws Exception {
        try (CuratorFramework c = Recipes.open(session)) {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(c, path);
            for (boolean end = false; !end;) {
                int weight = !writersAlone && ThreadLocalRandom.current().nextInt(10) < 7 ? 0 : 1;
                InterProcessMutex half = weight == 0 ? lock.readLock() : lock.writeLock();
                half.acquire();
                end = door.visit(weight);
                half.release();
            }
        }
    }

    private static void semaphore(Door door, String path) throws Exception {
        try (CuratorFramework c = Recipes.open(session)) {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(c, path, permits);
            for (boolean end = false; !end;) {
                int weight = fixedWeight > 0 ? fixedWeight : ThreadLocalRandom.current().nextInt(4) == 0 ? 2 : 1;
                Collection<Lease> leases = semaphore.acquire(weight);
                end = door.visit(weight);
                semaphore.returnAll(leases);
            }
        }
    }

    private static void latch(Door door, String path) throws Exception {
        try (CuratorFramework c = Recipes.open(session)) {
            for (boolean end = false; !end;) {
                try (LeaderLatch latch = new LeaderLatch(c, path, "curator")) {
                    latch.start();
                    latch.await();
                    end = door.visit(1);
                }
            }
        }
    }

    private static void selector(Door door, String path) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        try (CuratorFramework c = Recipes.open(session);
                LeaderSelector selector = new LeaderSelector(c, path, new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework client) throws Exception {
                        if (over.getCount() > 0 && door.visit(1)) {
                            over.countDown();
                        }
                    }
                })) {
            selector.setId("curator");
            selector.autoRequeue();
            selector.start();
            over.await();
        }
    }

    private static ZooKeeper connect() throws Exception {
        CountDownLatch up = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(Recipes.servers, session, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                up.countDown();
            }
        });
        Steps.await(up, "connection");
        return zk;
    }

    /** A candidate fails when another's node goes while it reads all of them. It then has to stand anew. */
    private static void support(Door door, String path) throws Exception {
        try (ZooKeeper zk = connect()) {
            for (boolean end = false; !end;) {
                BlockingQueue<EventType> outcome = new LinkedBlockingQueue<>();
                LeaderElectionSupport candidate = new LeaderElectionSupport();
                candidate.setZooKeeper(zk);
                candidate.setRootNodeName(path);
                candidate.setHostName("java");
                candidate.addListener(event -> {
                    if (event == EventType.ELECTED_COMPLETE || event == EventType.FAILED) {
                        outcome.add(event);
                    }
                });
                candidate.start();
                if (outcome.take() == EventType.ELECTED_COMPLETE) {
                    end = door.visit(1);
                }
                candidate.stop();
            }
        }
    }

    private static void writelock(Door door, String path) throws Exception {
        try (ZooKeeper zk = connect()) {
            Semaphore acquired = new Semaphore(0);
            WriteLock lock = new WriteLock(zk, path, null, new LockListener() {
                @Override
                public void lockAcquired() {
                    acquired.release();
                }

                @Override
                public void lockReleased() {
                }
            });
            for (boolean end = false; !end;) {
                lock.lock();
                acquired.acquire();
                end = door.visit(1);
                lock.unlock();
            }
        }
    }
}
