import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;

/** What the programs share that follow a test's orders: one a line, each answered by one line. */
final class Orders {
    interface Answer {
        String to(String[] words) throws Exception;
    }

    /** Returns a client that is connected. */
    static CuratorFramework connect(String servers, int sessionMs) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(sessionMs)
                .connectionTimeoutMs(10_000).retryPolicy(new RetryForever(20)).build();
        client.start();
        Steps.yes(client.blockUntilConnected(Steps.PATIENCE_SECONDS, TimeUnit.SECONDS), "no connection");
        return client;
    }

    /** Follows the orders until there are no more, and ends the program. */
    static void follow(Answer answer) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                say(answer.to(line.split(" ")));
            } catch (Exception | AssertionError e) {
                say("failed " + line + ": " + e);
            }
        }
        System.exit(0);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] b) {
        return new String(b, StandardCharsets.UTF_8);
    }
}
