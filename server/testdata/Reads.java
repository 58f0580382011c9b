import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.URIParameter;
import java.nio.file.*;
import java.util.*;
import javax.security.auth.login.*;
import javax.security.auth.x500.X500Principal;

/** Answers each line of standard input, a word and hexadecimal bytes, with what Java reads in the bytes. */
public class Reads {
    static String hex(String s) {
        return HexFormat.of().formatHex(s.getBytes(StandardCharsets.UTF_8));
    }

    static String pairs(Map<?, ?> map) {
        StringBuilder b = new StringBuilder("ok");
        for (Map.Entry<?, ?> e : new TreeMap<Object, Object>(map).entrySet()) {
            b.append(' ').append(hex((String) e.getKey())).append('=').append(hex((String) e.getValue()));
        }
        return b.toString();
    }

    static String read(String kind, byte[] bytes, Path file) throws Exception {
        switch (kind) {
        case "x500":
            return "ok " + hex(new X500Principal(bytes).getName());
        case "properties":
            Properties p = new Properties();
            p.load(new ByteArrayInputStream(bytes));
            return pairs(p);
        default: // the options of the section Server, as ZooKeeper reads them
            Files.write(file, bytes);
            Configuration c = Configuration.getInstance("JavaLoginConfig", new URIParameter(file.toUri()));
            AppConfigurationEntry[] entries = c.getAppConfigurationEntry("Server");
            if (entries == null) {
                return "no section Server";
            }
            Map<String, Object> options = new HashMap<>();
            for (AppConfigurationEntry e : entries) {
                options.putAll(e.getOptions());
            }
            return pairs(options);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        Path file = Files.createTempFile("reads", ".conf");
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            String answer;
            try {
                answer = read(words[0], HexFormat.of().parseHex(words[1]), file);
            } catch (Exception e) {
                answer = "refused";
            }
            System.out.println(answer);
        }
        Files.delete(file);
    }
}
