package scaffold;

import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.api.reconciler.Workflow;
import io.javaoperatorsdk.operator.api.reconciler.dependent.Dependent;

@Workflow(dependents = {@Dependent(type = ConfigMapDependentResource.class)})
public class ScaffoldReconciler implements Reconciler<ScaffoldCustomResource> {
    @Override
    public UpdateControl<ScaffoldCustomResource> reconcile(
            ScaffoldCustomResource primary, Context<ScaffoldCustomResource> context) {
        return UpdateControl.noUpdate();
    }
}
