import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/**
 * One party of a DistributedDoubleBarrier for each client. A DistributedDoubleBarrier can be used once, and its path not
 * again at once: who is slow to leave would wait for those who have come again. So two paths take turns.
 */
final class CuratorBarriers implements CuratorWorker.Worker {
    private final List<CuratorFramework> clients;
    private final String root;
    private final int parties;

    CuratorBarriers(List<CuratorFramework> clients, String root, int parties) {
        this.clients = clients;
        this.root = root;
        this.parties = parties;
    }

    @Override
    public String obey(String order, int[] n, PrintStream out) throws Exception {
        if (!order.equals("meet")) {
            throw new IllegalArgumentException("unknown order " + order);
        }
        CyclicBarrier inside = new CyclicBarrier(clients.size());
        long start = System.nanoTime();
        List<Future<Void>> all = new ArrayList<>();
        for (CuratorFramework client : clients) {
            all.add(CuratorWorker.POOL.submit(() -> {
                for (int i = 0; i < n[0]; i++) {
                    DistributedDoubleBarrier party = new DistributedDoubleBarrier(client, root + "/" + i % 2, parties);
                    party.enter();
                    inside.await(); // who has not counted yet when the first leave would wait for ever
                    party.leave();
                }
                return null;
            }));
        }
        for (Future<Void> f : all) {
            f.get();
        }
        return "ok " + n[0] + " " + (System.nanoTime() - start);
    }
}
