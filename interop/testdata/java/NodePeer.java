import java.io.BufferedReader;
import java.io.Closeable;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;

/**
 * Executes the commands of node_test.go with Curator's PersistentNode and PersistentTtlNode: one a line, each answered
 * by one line. Arguments: SERVERS SESSION_MS.
 */
final class NodePeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[0])
                .sessionTimeoutMs(Integer.parseInt(args[1])).retryPolicy(new RetryForever(100)).build();
        client.start();
        Map<String, PersistentNode> nodes = new HashMap<>();
        Map<String, PersistentTtlNode> touched = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] order = line.split(" ");
            String name = order.length > 1 ? order[1] : "";
            String answer = "ok";
            try {
                switch (order[0]) {
                    case "keep": // NAME MODE PROTECTED PATH DATA
                        PersistentNode node = new PersistentNode(client, CreateMode.valueOf(order[2]),
                                Boolean.parseBoolean(order[3]), order[4], bytes(order[5]));
                        node.start();
                        nodes.put(name, node);
                        break;
                    case "ttl": // NAME MS PATH DATA
                        PersistentTtlNode ttl = new PersistentTtlNode(client, order[3], Long.parseLong(order[2]),
                                bytes(order[4]));
                        ttl.start();
                        touched.put(name, ttl);
                        break;
                    case "await": // NAME: until the node was created for the first time; its path
                        if (touched.containsKey(name)) {
                            answer = String.valueOf(touched.get(name).waitForInitialCreate(30, TimeUnit.SECONDS));
                        } else if (nodes.get(name).waitForInitialCreate(30, TimeUnit.SECONDS)) {
                            answer = nodes.get(name).getActualPath();
                        } else {
                            answer = "failed: not created";
                        }
                        break;
                    case "set": // NAME DATA
                        nodes.get(name).setData(bytes(order[2]));
                        break;
                    case "close": // NAME
                        Closeable c = nodes.containsKey(name) ? nodes.remove(name) : touched.remove(name);
                        c.close();
                        break;
                    case "session":
                        answer = Long.toString(client.getZookeeperClient().getZooKeeper().getSessionId());
                        break;
                    default:
                        throw new IllegalArgumentException(order[0]);
                }
            } catch (Exception e) {
                answer = "failed: " + e;
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }
}
