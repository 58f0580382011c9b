import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;

/**
 * Executes the commands of group_test.go with Curator's GroupMember and PersistentTtlNode: one a line, each answered by
 * one line. Arguments: SERVERS SESSION_MS PATH.
 */
final class GroupPeer {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = Orders.connect(args[0], Integer.parseInt(args[1]));
        Map<String, GroupMember> members = new HashMap<>();
        Orders.follow(order -> {
            String answer = "ok";
            switch (order[0]) {
                case "join": // ID DATA
                    GroupMember joined = new GroupMember(client, args[2], order[1], Orders.bytes(order[2]));
                    joined.start();
                    members.put(order[1], joined);
                    break;
                case "set": // ID DATA
                    members.get(order[1]).setThisData(Orders.bytes(order[2]));
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
                    new PersistentTtlNode(client, order[1], Long.parseLong(order[2]), Orders.bytes(order[3])).start();
                    break;
                default:
                    throw new IllegalArgumentException(order[0]);
            }
            return answer;
        });
    }

    private static String show(GroupMember member) {
        StringBuilder all = new StringBuilder();
        new TreeMap<>(member.getCurrentMembers()).forEach((id, data) -> {
            all.append(all.length() == 0 ? "" : ",").append(id).append("=")
                    .append(Orders.text(data));
        });
        return all.toString();
    }
}
