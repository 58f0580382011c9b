import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

/** Executes the commands of doc.go on Curator's InterProcessMutex. */
final class CuratorParty {
    private static final Map<String, CuratorFramework> CLIENTS = new HashMap<>();
    private static final Map<String, CountDownLatch> LEAVING = new ConcurrentHashMap<>();

    private static synchronized void report(String name, String event, long at, String why) {
        System.out.println(name + " " + event + " " + at + " " + why);
        System.out.flush();
    }

    private static void join(String name, CuratorFramework client, String path) {
        try {
            InterProcessMutex mutex = new InterProcessMutex(client, path);
            mutex.acquire();
            long at = System.nanoTime();
            client.getConnectionStateListenable().addListener((c, state) -> {
                long now = System.nanoTime();
                if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                    report(name, "told", now, state.toString());
                }
                if (state == ConnectionState.LOST) {
                    report(name, "lost", now, state.toString());
                }
            });
            report(name, "acquired", at, "");
            LEAVING.get(name).await();
            report(name, "told", System.nanoTime(), "released");
            mutex.release();
            report(name, "left", System.nanoTime(), "ok");
        } catch (Exception e) {
            report(name, "gone", System.nanoTime(), e.toString());
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("leave")) {
                LEAVING.get(words[1]).countDown();
                continue;
            }
            CuratorFramework client = CLIENTS.get(words[2]);
            if (client == null) {
                client = CuratorFrameworkFactory.newClient(words[4], Integer.parseInt(words[7]), 15000, new RetryForever(100));
                client.start();
                CLIENTS.put(words[2], client);
            }
            CuratorFramework connected = client;
            LEAVING.put(words[1], new CountDownLatch(1));
            Thread thread = new Thread(() -> join(words[1], connected, words[6]));
            thread.setDaemon(true);
            thread.start();
        }
        Runtime.getRuntime().halt(0);
    }
}
