import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.zookeeper.CreateMode;

/** Takes the lock at a path repeatedly, with several clients. The holder creates a node that must not exist before. */
final class Contender {
    public static void main(String[] args) throws Exception {
        String path = args[1];
        String inside = args[2];
        int clients = Integer.parseInt(args[3]);
        int turns = Integer.parseInt(args[4]);
        Recipes.servers = args[0];
        ExecutorService pool = Executors.newCachedThreadPool();
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            all.add(pool.submit(() -> {
                try (CuratorFramework c = Recipes.open()) {
                    InterProcessMutex mutex = new InterProcessMutex(c, path);
                    for (int turn = 0; turn < turns; turn++) {
                        Steps.yes(mutex.acquire(60, TimeUnit.SECONDS), "no lock within a minute");
                        c.create().withMode(CreateMode.EPHEMERAL).forPath(inside);
                        c.delete().forPath(inside);
                        mutex.release();
                    }
                }
                return null;
            }));
        }
        for (Future<?> f : all) {
            f.get();
        }
        System.exit(0);
    }
}
