import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.Config;
import java.util.concurrent.TimeUnit;

/**
 * The informer of the official client, as its InformerExample.
 * https://github.com/kubernetes-client/java/blob/master/examples/examples-release-latest/src/main/java/io/kubernetes/client/examples/InformerExample.java
 */
public class Main {
    public static void main(String[] args) throws Exception {
        ApiClient apiClient = Config.defaultClient();
        apiClient.setHttpClient(
                apiClient.getHttpClient().newBuilder().readTimeout(0, TimeUnit.SECONDS).build());
        CoreV1Api coreV1Api = new CoreV1Api(apiClient);

        SharedInformerFactory factory = new SharedInformerFactory(apiClient);
        SharedIndexInformer<V1ConfigMap> informer = factory.sharedIndexInformerFor(
                (CallGeneratorParams params) -> coreV1Api.listNamespacedConfigMap("default")
                        .resourceVersion(params.resourceVersion)
                        .watch(params.watch)
                        .timeoutSeconds(params.timeoutSeconds)
                        .buildCall(null),
                V1ConfigMap.class,
                V1ConfigMapList.class);

        informer.addEventHandler(new ResourceEventHandler<V1ConfigMap>() {
            @Override
            public void onAdd(V1ConfigMap map) {
                System.out.printf("%s added!\n", map.getMetadata().getName());
            }

            @Override
            public void onUpdate(V1ConfigMap oldMap, V1ConfigMap newMap) {
                System.out.printf("%s => %s updated!\n",
                        oldMap.getMetadata().getName(), newMap.getMetadata().getName());
            }

            @Override
            public void onDelete(V1ConfigMap map, boolean deletedFinalStateUnknown) {
                System.out.printf("%s deleted!\n", map.getMetadata().getName());
            }
        });

        factory.startAllRegisteredInformers();
        Thread.currentThread().join();
    }
}
