package scaffold;

import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.javaoperatorsdk.operator.Operator;
import java.util.concurrent.TimeUnit;

/**
 * The operator that `mvn io.javaoperatorsdk:bootstrapper:create` writes: a custom resource with a ConfigMap that depends on
 * it. The commands of its README are here too: they create the definition and an object of it.
 * https://github.com/operator-framework/java-operator-sdk/tree/main/bootstrapper-maven-plugin/src/main/resources
 */
public class Runner {
    public static void main(String[] args) {
        try (KubernetesClient client = new KubernetesClientBuilder().build()) {
            CustomResourceDefinition definition = client.apiextensions().v1().customResourceDefinitions()
                    .load(Runner.class.getResourceAsStream("/META-INF/fabric8/scaffoldcustomresources.crowd.dev-v1.yml"))
                    .serverSideApply();
            client.resource(definition).waitUntilCondition(
                    found -> found != null && found.getStatus() != null && found.getStatus().getConditions().stream()
                            .anyMatch(is -> is.getType().equals("Established") && is.getStatus().equals("True")),
                    30, TimeUnit.SECONDS);
            client.load(Runner.class.getResourceAsStream("/k8s/test-resource.yaml"))
                    .inNamespace("default").serverSideApply();
        }
        Operator operator = new Operator();
        operator.register(new ScaffoldReconciler(),
                configuration -> configuration.settingNamespace("default"));
        operator.installShutdownHook(java.time.Duration.ofSeconds(1));
        operator.start();
    }
}
