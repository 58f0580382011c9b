import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;

/** Uses CuratorCache. The first client has the caches, the last one changes nodes. */
final class CuratorCaches implements CuratorWorker.Worker {
    private final List<CuratorFramework> clients;
    private final String root;
    private final int trees;
    private final List<CuratorCache> caches = new ArrayList<>();

    CuratorCaches(List<CuratorFramework> clients, String root, int trees) {
        this.clients = clients;
        this.root = root;
        this.trees = trees;
    }

    @Override
    public String obey(String order, int[] n, PrintStream out) throws Exception {
        switch (order) {
            case "load":
                return load();
            case "unload":
                for (CuratorCache c : caches) {
                    c.close();
                }
                caches.clear();
                return "ok";
            case "follow":
                return follow(n[0], out);
            case "memory":
                return CuratorWorker.memory();
            default:
                throw new IllegalArgumentException("unknown order " + order);
        }
    }

    private String path(int i) {
        return String.format("%s/%03d", root, i);
    }

    /** A cache that is complete when the latch opens. */
    private CuratorCache start(int i, CountDownLatch complete) {
        CuratorCache c = CuratorCache.build(clients.get(0), path(i));
        c.listenable().addListener(CuratorCacheListener.builder().forInitialized(complete::countDown).build());
        c.start();
        return c;
    }

    private String load() throws Exception {
        long start = System.nanoTime();
        CountDownLatch complete = new CountDownLatch(trees);
        for (int i = 0; i < trees; i++) {
            caches.add(start(i, complete));
        }
        if (!complete.await(100, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the caches are not complete after 100 s");
        }
        long took = System.nanoTime() - start;
        long nodes = 0;
        for (CuratorCache c : caches) {
            nodes += c.size();
        }
        return "ok " + nodes + " " + took;
    }

    private String follow(long millis, PrintStream out) throws Exception {
        CuratorFramework writer = clients.get(clients.size() - 1);
        if (writer.checkExists().forPath(path(0)) == null) {
            writer.create().creatingParentsIfNeeded().forPath(path(0), new byte[0]);
        }
        CountDownLatch complete = new CountDownLatch(1);
        CuratorCache cache = start(0, complete);
        complete.await();
        LinkedBlockingQueue<Long> seen = new LinkedBlockingQueue<>();
        cache.listenable().addListener(CuratorCacheListener.builder().forChanges((before, after) -> seen.add(CuratorWorker.now())).build());
        long start = System.nanoTime();
        long end = start + TimeUnit.MILLISECONDS.toNanos(millis);
        StringBuilder text = new StringBuilder();
        int n = 0;
        for (; System.nanoTime() < end; n++) {
            long began = CuratorWorker.now();
            writer.setData().forPath(path(0), Integer.toString(n).getBytes("UTF-8"));
            Long at = seen.poll(30, TimeUnit.SECONDS);
            if (at == null) {
                throw new IllegalStateException("no change after 30 s");
            }
            text.append("t ").append(began).append(' ').append(at).append(' ').append(at).append('\n');
        }
        long took = System.nanoTime() - start;
        cache.close();
        out.print(text);
        return "ok " + n + " " + took;
    }
}
