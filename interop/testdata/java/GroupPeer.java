import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.retry.RetryForever;

/**
 * Executes the commands of group_test.go with Curator's GroupMember and PersistentTtlNode: one a line, each answered by
 * one line. Arguments: SERVERS SESSION_MS PATH.
 */
final class GroupPeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(args[0])
                .sessionTimeoutMs(Integer.parseInt(args[1])).retryPolicy(new RetryForever(100)).build();
        client.start();
        Map<String, GroupMember> members = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] order = line.split(" ");
            String answer = "ok";
            try {
                switch (order[0]) {
                    case "join": // ID DATA
                        GroupMember joined = new GroupMember(client, args[2], order[1], bytes(order[2]));
                        joined.start();
                        members.put(order[1], joined);
                        break;
                    case "set": // ID DATA
                        members.get(order[1]).setThisData(bytes(order[2]));
                        break;
                    case "leave": // ID
                        members.remove(order[1]).close();
                        break;
                    case "await": // ID MEMBERS: until the member sees these, as ID=DATA,...
                        while (!show(members.get(order[1])).equals(order[2])) {
                            Thread.sleep(20);
                        }
                        break;
                    case "ttl": // PATH MS DATA
                        new PersistentTtlNode(client, order[1], Long.parseLong(order[2]), bytes(order[3])).start();
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

    private static String show(GroupMember member) {
        StringBuilder all = new StringBuilder();
        new TreeMap<>(member.getCurrentMembers()).forEach((id, data) -> {
            all.append(all.length() == 0 ? "" : ",").append(id).append("=")
                    .append(new String(data, StandardCharsets.UTF_8));
        });
        return all.toString();
    }
}
