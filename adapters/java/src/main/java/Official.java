import com.google.gson.JsonObject;
import io.kubernetes.client.common.KubernetesListObject;
import io.kubernetes.client.common.KubernetesObject;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodList;
import io.kubernetes.client.util.CallGenerator;
import io.kubernetes.client.util.Config;
import java.util.List;
import java.util.Map;

/**
 * The informer of the official client, with calls of the generated API, as in its example. An informer over
 * DynamicKubernetesApi fails at the first object of a list, which has no kind (27.0.0).
 */
final class Official implements Adapter.Client {
    private volatile SharedIndexInformer<? extends KubernetesObject> informer;

    private volatile boolean announced;

    public static void main(String[] arguments) throws Exception {
        Adapter.run(new Official());
    }

    @Override
    public About about() {
        return new About("kubernetes-java", "kubernetes-client/java", "io.kubernetes/client-java");
    }

    @Override
    public List<String> capabilities() {
        return List.of("selectors", "field-selectors", "http2", "gzip", "errors", "pause", "cache");
    }

    @Override
    public List<String> resources() {
        return List.of("configmaps", "pods");
    }

    @Override
    public void follow(JsonObject start) throws Exception {
        ApiClient client = Config.defaultClient();
        CoreV1Api api = new CoreV1Api(client);
        String namespace = Adapter.text(start, "namespace");
        String labels = Adapter.text(start.getAsJsonObject("options"), "labelSelector");
        String fields = Adapter.text(start.getAsJsonObject("options"), "fieldSelector");
        SharedInformerFactory factory = new SharedInformerFactory(client);
        if (Adapter.text(start.getAsJsonObject("resource"), "plural").equals("pods")) {
            follow(factory, V1Pod.class, V1PodList.class, namespace == null
                    ? ask -> api.listPodForAllNamespaces().labelSelector(labels).fieldSelector(fields)
                            .resourceVersion(ask.resourceVersion).watch(ask.watch)
                            .timeoutSeconds(ask.timeoutSeconds).buildCall(null)
                    : ask -> api.listNamespacedPod(namespace).labelSelector(labels).fieldSelector(fields)
                            .resourceVersion(ask.resourceVersion).watch(ask.watch)
                            .timeoutSeconds(ask.timeoutSeconds).buildCall(null));
        } else {
            follow(factory, V1ConfigMap.class, V1ConfigMapList.class, namespace == null
                    ? ask -> api.listConfigMapForAllNamespaces().labelSelector(labels).fieldSelector(fields)
                            .resourceVersion(ask.resourceVersion).watch(ask.watch)
                            .timeoutSeconds(ask.timeoutSeconds).buildCall(null)
                    : ask -> api.listNamespacedConfigMap(namespace).labelSelector(labels).fieldSelector(fields)
                            .resourceVersion(ask.resourceVersion).watch(ask.watch)
                            .timeoutSeconds(ask.timeoutSeconds).buildCall(null));
        }
    }

    private <T extends KubernetesObject, L extends KubernetesListObject> void follow(
            SharedInformerFactory factory, Class<T> kind, Class<L> list, CallGenerator calls) {
        CallGenerator observed = ask -> {
            if (Boolean.TRUE.equals(ask.watch) && !announced) {
                announced = true;
                Adapter.announce(informer::hasSynced, this::items);
            }
            return calls.generate(ask);
        };
        SharedIndexInformer<T> made = factory.sharedIndexInformerFor(observed, kind, list, 0, (of, error) ->
                Adapter.emitError(error, error instanceof ApiException refused ? refused.getCode() : null));
        made.addEventHandler(new Handler<>());
        informer = made;
        factory.startAllRegisteredInformers();
    }

    @Override
    public List<Map<String, Object>> items() {
        return informer == null ? List.of() : informer.getIndexer().list().stream().map(Official::identity).toList();
    }

    private static final class Handler<T extends KubernetesObject> implements ResourceEventHandler<T> {
        @Override
        public void onAdd(T object) {
            Adapter.emitObject("add", identity(object));
        }

        @Override
        public void onUpdate(T before, T object) {
            Adapter.emitObject("update", identity(object));
        }

        @Override
        public void onDelete(T object, boolean finalStateUnknown) {
            Map<String, Object> keys = identity(object);
            if (finalStateUnknown) {
                keys.put("final", false);
            }
            Adapter.emitObject("delete", keys);
        }
    }

    private static Map<String, Object> identity(KubernetesObject object) {
        V1ObjectMeta about = object.getMetadata();
        return Adapter.identity(about.getNamespace(), about.getName(), about.getUid(), about.getResourceVersion());
    }
}
