import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;

/** fabric8's informer over the ConfigMaps of all namespaces. Prints the lines described in e2e/src/client.rs. */
public final class Informer {
    public static void main(String[] arguments) throws Exception {
        try (KubernetesClient client = new KubernetesClientBuilder().build()) {
            client.configMaps().inAnyNamespace().inform(new Printing());
            print("synced", "");
            // Exits at the end of its standard input.
            while (System.in.read() >= 0) {
            }
        }
    }

    private static final class Printing implements ResourceEventHandler<ConfigMap> {
        @Override
        public void onAdd(ConfigMap object) {
            printObject("added", object);
        }

        @Override
        public void onUpdate(ConfigMap before, ConfigMap object) {
            printObject("updated", object);
        }

        @Override
        public void onDelete(ConfigMap object, boolean lastStateUnknown) {
            printObject("deleted", object);
        }
    }

    /** Names and values of the tests need no escaping. */
    private static void printObject(String event, ConfigMap object) {
        String name = object.getMetadata().getName();
        String value = object.getMetadata().getLabels().getOrDefault("v", "");
        print(event, ",\"name\":\"" + name + "\",\"value\":\"" + value + "\"");
    }

    private static synchronized void print(String event, String fields) {
        System.out.println("{\"event\":\"" + event + "\"" + fields + "}");
        System.out.flush();
    }
}
