import com.google.gson.JsonObject;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.List;
import java.util.Map;

/** The informer of fabric8's client, over generic resources. */
final class Fabric8 implements Adapter.Client, ResourceEventHandler<GenericKubernetesResource> {
    private volatile SharedIndexInformer<GenericKubernetesResource> informer;

    public static void main(String[] arguments) throws Exception {
        Adapter.run(new Fabric8());
    }

    @Override
    public About about() {
        return new About("fabric8", "fabric8io/kubernetes-client", "io.fabric8/kubernetes-client-api");
    }

    @Override
    public List<String> capabilities() {
        return List.of("selectors", "page-size", "errors", "pause", "cache");
    }

    @Override
    public void follow(JsonObject start) {
        JsonObject resource = start.getAsJsonObject("resource");
        JsonObject options = start.getAsJsonObject("options");
        KubernetesClient client = new KubernetesClientBuilder().build();
        var all = client.genericKubernetesResources(new ResourceDefinitionContext.Builder()
                .withGroup(Adapter.text(resource, "group"))
                .withVersion(Adapter.text(resource, "version"))
                .withPlural(Adapter.text(resource, "plural"))
                .withKind(Adapter.text(resource, "kind"))
                .withNamespaced(true)
                .build());
        var place = start.has("namespace")
                ? all.inNamespace(Adapter.text(start, "namespace"))
                : all.inAnyNamespace();
        var selected = options.has("labelSelector")
                ? place.withLabelSelector(Adapter.text(options, "labelSelector"))
                : place;
        informer = (options.has("pageSize") ? selected.withLimit(options.get("pageSize").getAsLong()) : selected)
                .runnableInformer(0);
        informer.addEventHandler(this);
        informer.exceptionHandler((started, error) -> {
            Adapter.emitError(error, error instanceof KubernetesClientException refused ? refused.getCode() : null);
            // The default of the library.
            return started && !(error instanceof WatcherException);
        });
        informer.start();
    }

    @Override
    public List<Map<String, Object>> items() {
        return informer == null ? List.of() : informer.getStore().list().stream().map(Fabric8::identity).toList();
    }

    @Override
    public void onList(String version, boolean remainedEmpty) {
        Adapter.emitSynced();
    }

    @Override
    public void onAdd(GenericKubernetesResource object) {
        Adapter.emitObject("add", identity(object));
    }

    @Override
    public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource object) {
        Adapter.emitObject("update", identity(object));
    }

    @Override
    public void onDelete(GenericKubernetesResource object, boolean finalStateUnknown) {
        Map<String, Object> keys = identity(object);
        if (finalStateUnknown) {
            keys.put("final", false);
        }
        Adapter.emitObject("delete", keys);
    }

    private static Map<String, Object> identity(GenericKubernetesResource object) {
        ObjectMeta about = object.getMetadata();
        return Adapter.identity(about.getNamespace(), about.getName(), about.getUid(), about.getResourceVersion());
    }
}
