import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;

/**
 * Executes the commands of cache_peer_test.go with CuratorCache: one a line, each answered by one line. Arguments:
 * SERVERS SESSION_MS PATH.
 */
final class CachePeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[0])
                .sessionTimeoutMs(Integer.parseInt(args[1])).retryPolicy(new RetryForever(100)).build();
        client.start();
        CuratorCache cache = CuratorCache.build(client, args[2]);
        cache.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] order = line.split(" ");
            String answer = "ok";
            try {
                switch (order[0]) {
                    case "set": // PATH DATA
                        client.create().orSetData().creatingParentsIfNeeded().forPath(order[1], bytes(order[2]));
                        break;
                    case "mark": // PATH DATA: an ephemeral node
                        client.create().withMode(CreateMode.EPHEMERAL).forPath(order[1], bytes(order[2]));
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

    private static String show(CuratorCache cache) {
        Map<String, String> nodes = new TreeMap<>();
        cache.stream().forEach(n -> nodes.put(n.getPath(), new String(n.getData(), StandardCharsets.UTF_8)));
        StringBuilder all = new StringBuilder();
        nodes.forEach((path, data) -> all.append(all.length() == 0 ? "" : ",").append(path).append("=").append(data));
        return all.toString();
    }
}
