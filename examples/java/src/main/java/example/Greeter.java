package example;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;

/** A controller: a ConfigMap labelled greet=yes gets the annotation greeting. */
public final class Greeter implements ResourceEventHandler<ConfigMap>, AutoCloseable {
    private final KubernetesClient client;
    private final SharedIndexInformer<ConfigMap> informer;

    public Greeter(KubernetesClient client) {
        this.client = client;
        this.informer = client.configMaps().inNamespace("default").inform(this);
    }

    @Override
    public void onAdd(ConfigMap object) {
        if (!"yes".equals(object.getMetadata().getLabels().get("greet"))
                || object.getMetadata().getAnnotations().containsKey("greeting")) {
            return;
        }
        String greeting = "hello " + object.getMetadata().getName();
        client.resource(object).edit(current ->
                new ConfigMapBuilder(current).editMetadata().addToAnnotations("greeting", greeting).endMetadata().build());
    }

    @Override
    public void onUpdate(ConfigMap before, ConfigMap object) {
        onAdd(object);
    }

    @Override
    public void onDelete(ConfigMap object, boolean lastStateUnknown) {}

    @Override
    public void close() {
        informer.close();
    }
}
