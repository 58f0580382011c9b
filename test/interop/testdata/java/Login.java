import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/** Logs in by SASL with a JAAS file's section Client and prints the outcome. Arguments: the server, seconds to wait. */
public class Login {
    public static void main(String[] args) throws Exception {
        LinkedBlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
        ZooKeeper zk = new ZooKeeper(args[0], 10_000, event -> states.add(event.getState()));
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(args[1]));
        int lost = 0;
        while (zk.getState().isAlive()) {
            KeeperState state = states.poll(Math.min(100_000_000, end - System.nanoTime()), TimeUnit.NANOSECONDS);
            if (state == KeeperState.SaslAuthenticated) {
                System.out.println("in as " + zk.whoAmI());
                zk.close();
                return;
            }
            if (state == KeeperState.Disconnected) {
                lost++;
            }
            if (System.nanoTime() > end) {
                System.out.println("tries for ever, disconnected " + lost + " times");
                System.exit(0);
            }
        }
        System.out.println("refused: " + zk.getState());
        System.exit(0);
    }
}
