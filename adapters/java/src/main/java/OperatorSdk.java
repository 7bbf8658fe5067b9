import com.google.gson.JsonObject;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.batch.v1.Job;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.http.BasicBuilder;
import io.fabric8.kubernetes.client.http.HttpRequest;
import io.fabric8.kubernetes.client.http.Interceptor;
import io.javaoperatorsdk.operator.OperatorException;
import io.javaoperatorsdk.operator.api.config.BaseConfigurationService;
import io.javaoperatorsdk.operator.api.config.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.config.InformerStoppedHandler;
import io.javaoperatorsdk.operator.api.config.informer.FieldSelector;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The informer event source of the Java Operator SDK, as an operator starts it. Its filters observe the events; the events
 * that a reconciler receives have no object. It has its own version of fabric8, so that it is built by operator-sdk/pom.xml.
 */
final class OperatorSdk implements Adapter.Client {
    private static final Map<String, Class<? extends HasMetadata>> KINDS = Map.of(
            "configmaps", ConfigMap.class,
            "pods", Pod.class,
            "secrets", Secret.class,
            "services", Service.class,
            "jobs", Job.class);

    private volatile InformerEventSource<? extends HasMetadata, ConfigMap> source;

    private volatile boolean announced;

    private boolean ended;

    public static void main(String[] arguments) throws Exception {
        Adapter.run(new OperatorSdk());
    }

    @Override
    public About about() {
        return new About(
                "java-operator-sdk",
                "operator-framework/java-operator-sdk",
                "io.javaoperatorsdk/operator-framework-core");
    }

    @Override
    public List<String> capabilities() {
        return List.of("selectors", "field-selectors", "page-size", "pause", "cache");
    }

    @Override
    public List<String> resources() {
        return List.of("configmaps", "pods", "secrets", "services", "jobs.batch");
    }

    @Override
    public void follow(JsonObject start) {
        follow(start, KINDS.get(Adapter.text(start.getAsJsonObject("resource"), "plural")));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private <T extends HasMetadata> void follow(JsonObject start, Class<T> kind) {
        JsonObject options = start.getAsJsonObject("options");
        var configuration = InformerEventSourceConfiguration.from(kind, ConfigMap.class)
                .withName("followed")
                .withOnAddFilter(object -> reports("add", object, false))
                .withOnUpdateFilter((object, before) -> reports("update", object, false))
                .withOnDeleteFilter((object, finalStateUnknown) -> reports("delete", object, finalStateUnknown))
                .withLabelSelector(Adapter.text(options, "labelSelector"))
                .withFieldSelector(fieldSelector(Adapter.text(options, "fieldSelector")));
        if (start.has("namespace")) {
            configuration.withNamespaces(Adapter.text(start, "namespace"));
        } else {
            configuration.withWatchAllNamespaces();
        }
        if (options.has("pageSize")) {
            configuration.withInformerListLimit(options.get("pageSize").getAsLong());
        }
        KubernetesClient client = new KubernetesClientBuilder()
                .withHttpClientBuilderConsumer(http -> http.addOrReplaceInterceptor("announce", new Announcer()))
                .build();
        ControllerConfiguration<ConfigMap> controller = new Configuration().getConfigurationFor(new Owner());
        var made = new InformerEventSource<T, ConfigMap>(
                configuration.build(), new EventSourceContext<>(null, controller, client, ConfigMap.class));
        // As the manager of a controller's event sources does.
        made.setControllerConfiguration((ControllerConfiguration) controller);
        made.setEventHandler(event -> {});
        source = made;
        try {
            made.start();
        } catch (OperatorException error) {
            end(error);
        }
    }

    private synchronized void end(Throwable error) {
        if (!ended) {
            ended = true;
            Adapter.emitError(error, null);
            Adapter.emit("end", Map.of());
        }
    }

    private static FieldSelector fieldSelector(String text) {
        List<FieldSelector.Field> fields = new ArrayList<>();
        for (String requirement : text == null ? new String[0] : text.split(",")) {
            String[] sides = requirement.split("!?=", 2);
            fields.add(new FieldSelector.Field(sides[0], sides[1], requirement.contains("!=")));
        }
        return new FieldSelector(fields);
    }

    @Override
    public List<Map<String, Object>> items() {
        return source == null ? List.of() : source.list().map(OperatorSdk::identity).toList();
    }

    /** Prints an event, and accepts it. */
    private synchronized boolean reports(String event, HasMetadata object, boolean finalStateUnknown) {
        Map<String, Object> keys = identity(object);
        if (finalStateUnknown) {
            keys.put("final", false);
        }
        // By default the process does not exist any more.
        if (!ended) {
            Adapter.emitObject(event, keys);
        }
        return true;
    }

    private static Map<String, Object> identity(HasMetadata object) {
        ObjectMeta about = object.getMetadata();
        return Adapter.identity(about.getNamespace(), about.getName(), about.getUid(), about.getResourceVersion());
    }

    /** Announces the first set at the first watch: the list before it is complete. */
    private final class Announcer implements Interceptor {
        @Override
        public void before(BasicBuilder builder, HttpRequest request, RequestTags tags) {
            if (request.uri().getQuery().contains("watch=true") && !announced) {
                announced = true;
                Adapter.announce(() -> true, OperatorSdk.this::items);
            }
        }
    }

    /** The defaults, except that an informer that stopped for good ends the events and not the process. */
    private final class Configuration extends BaseConfigurationService {
        @Override
        public Optional<InformerStoppedHandler> getInformerStoppedHandler() {
            return Optional.of((informer, error) -> {
                // As the default, which exits here. A failure at the start is an exception there.
                if (error != null && informer.hasSynced()) {
                    end(error);
                }
            });
        }
    }

    /** The controller that the event source belongs to. */
    private static final class Owner implements Reconciler<ConfigMap> {
        @Override
        public UpdateControl<ConfigMap> reconcile(ConfigMap map, Context<ConfigMap> context) {
            return UpdateControl.noUpdate();
        }
    }
}
