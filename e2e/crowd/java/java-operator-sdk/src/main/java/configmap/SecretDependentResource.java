package configmap;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.CRUDKubernetesDependentResource;
import io.javaoperatorsdk.operator.processing.dependent.kubernetes.KubernetesDependent;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;

@KubernetesDependent
public class SecretDependentResource extends CRUDKubernetesDependentResource<Secret, ConfigMap> {
    @Override
    protected Secret desired(ConfigMap map, Context<ConfigMap> context) {
        Map<String, String> data = new TreeMap<>();
        if (map.getData() != null) {
            map.getData().forEach((key, value) ->
                    data.put(key, Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8))));
        }
        return new SecretBuilder()
                .withNewMetadata()
                .withName(map.getMetadata().getName())
                .withNamespace(map.getMetadata().getNamespace())
                .endMetadata()
                .withData(data)
                .build();
    }
}
