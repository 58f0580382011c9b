import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/**
 * Executes the commands of barrier_test.go with Curator's barriers: see barrier_peer.py.
 * Arguments: SERVERS SESSION_MS PATH PARTIES.
 */
final class BarrierPeer {
    /** A party with a client of its own. */
    static final class Party {
        private final DistributedBarrier barrier;
        private final Supplier<DistributedDoubleBarrier> nextRound;
        private DistributedDoubleBarrier twice;

        Party(String servers, int session, String path, int parties) throws Exception {
            CuratorFramework client = Orders.connect(servers, session);
            barrier = new DistributedBarrier(client, path);
            nextRound = () -> new DistributedDoubleBarrier(client, path, parties);
        }

        void run(String command) throws Exception {
            switch (command) {
                case "enter" -> {
                    // It takes any notification for the last party's, even one left over from leaving the last round,
                    // so each round has an object of its own.
                    twice = nextRound.get();
                    twice.enter();
                }
                case "leave" -> twice.leave();
                case "set" -> barrier.setBarrier();
                case "remove" -> barrier.removeBarrier();
                case "wait" -> barrier.waitOnBarrier();
                default -> throw new IllegalArgumentException(command);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Party> known = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String name = words[0];
            String command = words[1];
            if (!known.containsKey(name)) {
                known.put(name, new Party(args[0], Integer.parseInt(args[1]), args[2], Integer.parseInt(args[3])));
            }
            Party party = known.get(name);
            Thread thread = new Thread(() -> {
                try {
                    party.run(command);
                    Orders.say(name + " " + command);
                } catch (Throwable e) {
                    Orders.say(name + " failed to " + command + ": " + e);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        System.exit(0);
    }
}
