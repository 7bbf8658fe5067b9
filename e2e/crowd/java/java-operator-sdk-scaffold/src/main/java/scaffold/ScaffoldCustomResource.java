package scaffold;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

@Group("crowd.dev")
@Version("v1")
public class ScaffoldCustomResource extends CustomResource<ScaffoldSpec, ScaffoldStatus> implements Namespaced {}
