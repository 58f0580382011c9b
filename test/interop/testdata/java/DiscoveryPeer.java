import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;

/**
 * Executes the commands of discovery_test.go with curator-x-discovery: one a line, each answered by one line.
 * Arguments: SERVERS SESSION_MS BASE.
 */
final class DiscoveryPeer {
    private static final Map<String, ServiceInstance<Object>> registered = new HashMap<>();
    private static final Map<String, ServiceCache<Object>> caches = new HashMap<>();
    private static ServiceDiscovery<Object> discovery;

    public static void main(String[] args) throws Exception {
        CuratorFramework client = Orders.connect(args[0], Integer.parseInt(args[1]));
        discovery = ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(args[2]).build();
        discovery.start();
        Orders.follow(DiscoveryPeer::execute);
    }

    private static String execute(String[] order) throws Exception {
        switch (order[0]) {
            case "register": // SERVICE ID PORT TYPE PAYLOAD
                ServiceInstance<Object> made = instance(order);
                discovery.registerService(made);
                registered.put(order[2], made);
                return "ok";
            case "update":
                discovery.updateService(instance(order));
                return "ok";
            case "unregister": // ID
                discovery.unregisterService(registered.remove(order[1]));
                return "ok";
            case "services":
                List<String> names = new ArrayList<>(discovery.queryForNames());
                Collections.sort(names);
                return "services " + String.join(" ", names);
            case "list": // SERVICE
                return show(new ArrayList<>(discovery.queryForInstances(order[1])));
            case "follow": // SERVICE WANTED: until the cache has the wanted instances
                return follow(order[1], order.length > 2 ? order[2] : "");
            default:
                throw new IllegalArgumentException(order[0]);
        }
    }

    private static ServiceInstance<Object> instance(String[] order) throws Exception {
        ServiceInstanceBuilder<Object> b = ServiceInstance.builder().name(order[1]).id(order[2])
                .address("10.0.0.1").port(Integer.parseInt(order[3])).registrationTimeUTC(1700000000123L)
                .serviceType(ServiceType.valueOf(order[4])).uriSpec(new UriSpec("{scheme}://{address}:{port}/x"));
        if (order.length > 5) {
            Map<String, Object> payload = new LinkedHashMap<>();
            payload.put("text", order[5]);
            b.payload(payload);
        }
        return b.build();
    }

    private static String show(List<ServiceInstance<Object>> all) {
        List<String> lines = new ArrayList<>();
        for (ServiceInstance<Object> i : all) {
            String text = "-";
            if (i.getPayload() instanceof Map) {
                text = String.valueOf(((Map<?, ?>) i.getPayload()).get("text"));
            }
            String url = i.getUriSpec() == null ? "-" : i.buildUriSpec();
            lines.add(i.getId() + "," + i.getServiceType() + "," + text + "," + url + "," + i.isEnabled());
        }
        Collections.sort(lines);
        return "instances " + String.join(" ", lines);
    }

    private static String follow(String service, String wanted) throws Exception {
        ServiceCache<Object> cache = caches.get(service);
        if (cache == null) {
            cache = discovery.serviceCacheBuilder().name(service).build();
            cache.start();
            caches.put(service, cache);
        }
        while (true) {
            List<String> ids = new ArrayList<>();
            for (ServiceInstance<Object> i : cache.getInstances()) {
                ids.add(i.getId());
            }
            Collections.sort(ids);
            if (String.join(",", ids).equals(wanted)) {
                return "ok";
            }
            Thread.sleep(20);
        }
    }
}
