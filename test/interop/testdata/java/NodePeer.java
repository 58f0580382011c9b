import java.io.Closeable;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.zookeeper.CreateMode;

/**
 * Executes the commands of node_test.go with Curator's PersistentNode and PersistentTtlNode: one a line, each answered
 * by one line. Arguments: SERVERS SESSION_MS.
 */
final class NodePeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = Orders.connect(args[0], Integer.parseInt(args[1]));
        Map<String, PersistentNode> nodes = new HashMap<>();
        Map<String, PersistentTtlNode> touched = new HashMap<>();
        Orders.follow(order -> {
            String name = order.length > 1 ? order[1] : "";
            String answer = "ok";
            switch (order[0]) {
                case "keep": // NAME MODE PROTECTED PATH DATA
                    PersistentNode node = new PersistentNode(client, CreateMode.valueOf(order[2]),
                            Boolean.parseBoolean(order[3]), order[4], Orders.bytes(order[5]));
                    node.start();
                    nodes.put(name, node);
                    break;
                case "ttl": // NAME MS PATH DATA
                    PersistentTtlNode ttl = new PersistentTtlNode(client, order[3], Long.parseLong(order[2]),
                            Orders.bytes(order[4]));
                    ttl.start();
                    touched.put(name, ttl);
                    break;
                case "await": // NAME: until the node was created for the first time; its path
                    if (touched.containsKey(name)) {
                        answer = String.valueOf(touched.get(name).waitForInitialCreate(30, TimeUnit.SECONDS));
                    } else if (nodes.get(name).waitForInitialCreate(30, TimeUnit.SECONDS)) {
                        answer = nodes.get(name).getActualPath();
                    } else {
                        throw new IllegalStateException("not created");
                    }
                    break;
                case "set": // NAME DATA
                    nodes.get(name).setData(Orders.bytes(order[2]));
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
            return answer;
        });
    }
}
