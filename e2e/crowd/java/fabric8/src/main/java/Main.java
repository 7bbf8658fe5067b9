import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;

/**
 * An informer of fabric8 with its default exception handler, as the cheat sheet of the client.
 * https://github.com/fabric8io/kubernetes-client/blob/main/doc/CHEATSHEET.md#sharedinformers
 */
public class Main {
    public static void main(String[] args) throws Exception {
        try (KubernetesClient client = new KubernetesClientBuilder().build();
                SharedIndexInformer<ConfigMap> informer =
                        client.configMaps().inNamespace("default").inform(new ResourceEventHandler<>() {
                            @Override
                            public void onAdd(ConfigMap map) {
                                System.out.println(map.getMetadata().getName() + " got added");
                            }

                            @Override
                            public void onUpdate(ConfigMap oldMap, ConfigMap newMap) {
                                System.out.println(oldMap.getMetadata().getName() + " got updated");
                            }

                            @Override
                            public void onDelete(ConfigMap map, boolean deletedFinalStateUnknown) {
                                System.out.println(map.getMetadata().getName() + " got deleted");
                            }
                        })) {
            System.out.println("Informer initialized.");
            Thread.currentThread().join();
        }
    }
}
