package example;

import static org.junit.jupiter.api.Assertions.assertFalse;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.github.fakeapiserver.Control;
import io.github.fakeapiserver.FakeApiserver;
import io.github.fakeapiserver.WithFakeApiserver;
import java.io.File;
import org.junit.jupiter.api.Test;

/** The controller keeps working after a 410 Gone, and the judge has nothing against its requests. */
@WithFakeApiserver
class GreeterTest {
    private static final String FROM = "from: {resource: configmaps}";

    @Test
    void survives410(FakeApiserver server) {
        File kubeconfig = server.kubeconfig().toFile();
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(kubeconfig)).build();
                Greeter greeter = new Greeter(client)) {
            server.await("when: {watch: 1}, " + FROM);
            create(client, "before");
            server.await(greeted("before"));

            Control.Injected expired = server.expire("configmaps");
            assertFalse(expired.streams().isEmpty(), "the controller has a watch open");
            create(client, "after");
            server.await("when: {list: 1}, " + FROM, expired.nextRecord());
            server.await(greeted("after"));

            server.expectNoViolations();
        }
    }

    private static void create(KubernetesClient client, String name) {
        client.resource(new ConfigMapBuilder()
                        .withNewMetadata().withName(name).withNamespace("default").addToLabels("greet", "yes").endMetadata()
                        .build())
                .create();
    }

    private static String greeted(String name) {
        return "when: {request: 1}, from: {verb: patch, name: " + name + "}";
    }
}
