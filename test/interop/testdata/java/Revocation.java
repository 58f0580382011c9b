import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Holds a revocable lock until it is revoked, and then revokes another holder's. Arguments: the server, the lock's path,
 * the node that says that we hold the lock, the node that says that the other holder does.
 */
public class Revocation {
    private static final long LIMIT = 60;

    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
            CountDownLatch asked = new CountDownLatch(1);
            mutex.makeRevocable(lock -> asked.countDown());
            mutex.acquire();
            client.create().forPath(args[2]);
            if (!asked.await(LIMIT, TimeUnit.SECONDS)) {
                throw new IllegalStateException("nobody has asked for the lock");
            }
            mutex.release();

            CountDownLatch held = new CountDownLatch(1);
            if (client.checkExists().usingWatcher((org.apache.zookeeper.Watcher) event -> held.countDown()).forPath(args[3]) == null
                    && !held.await(LIMIT, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the other one does not hold the lock");
            }
            Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
            if (!mutex.acquire(LIMIT, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the other one keeps the lock");
            }
            mutex.release();
        }
    }
}
