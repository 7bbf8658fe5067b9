import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;

/** fabric8's informer over the ConfigMaps of all namespaces. Speaks the lines that e2e/src/client.rs describes. */
public final class Informer {
    public static void main(String[] arguments) throws Exception {
        try (KubernetesClient client = new KubernetesClientBuilder().build()) {
            client.configMaps().inAnyNamespace().inform(new Telling());
            say("synced", "");
            // It ends with its standard input.
            while (System.in.read() >= 0) {
            }
        }
    }

    private static final class Telling implements ResourceEventHandler<ConfigMap> {
        @Override
        public void onAdd(ConfigMap object) {
            sayObject("added", object);
        }

        @Override
        public void onUpdate(ConfigMap before, ConfigMap object) {
            sayObject("updated", object);
        }

        @Override
        public void onDelete(ConfigMap object, boolean lastStateUnknown) {
            sayObject("deleted", object);
        }
    }

    /** Names and values of the tests need no escaping. */
    private static void sayObject(String event, ConfigMap object) {
        String name = object.getMetadata().getName();
        String value = object.getMetadata().getLabels().getOrDefault("v", "");
        say(event, ",\"name\":\"" + name + "\",\"value\":\"" + value + "\"");
    }

    private static synchronized void say(String event, String fields) {
        System.out.println("{\"event\":\"" + event + "\"" + fields + "}");
        System.out.flush();
    }
}
