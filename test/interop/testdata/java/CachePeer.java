import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.zookeeper.CreateMode;

/**
 * Executes the commands of cache_peer_test.go with CuratorCache: one a line, each answered by one line. Arguments:
 * SERVERS SESSION_MS PATH.
 */
final class CachePeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = Orders.connect(args[0], Integer.parseInt(args[1]));
        CuratorCache cache = CuratorCache.build(client, args[2]);
        cache.start();
        Orders.follow(order -> {
            String answer = "ok";
            switch (order[0]) {
                case "set": // PATH DATA
                    client.create().orSetData().creatingParentsIfNeeded().forPath(order[1], Orders.bytes(order[2]));
                    break;
                case "mark": // PATH DATA: an ephemeral node
                    client.create().withMode(CreateMode.EPHEMERAL).forPath(order[1], Orders.bytes(order[2]));
                    break;
                case "delete": // PATH
                    client.delete().deletingChildrenIfNeeded().forPath(order[1]);
                    break;
                case "await": // NODES: until the cache has these, as PATH=DATA,...
                    while (!show(cache).equals(order[1])) {
                        Thread.sleep(20);
                    }
                    break;
                default:
                    throw new IllegalArgumentException(order[0]);
            }
            return answer;
        });
    }

    private static String show(CuratorCache cache) {
        Map<String, String> nodes = new TreeMap<>();
        cache.stream().forEach(n -> nodes.put(n.getPath(), Orders.text(n.getData())));
        StringBuilder all = new StringBuilder();
        nodes.forEach((path, data) -> all.append(all.length() == 0 ? "" : ",").append(path).append("=").append(data));
        return all.toString();
    }
}
