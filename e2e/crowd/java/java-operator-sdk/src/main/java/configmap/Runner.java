package configmap;

import io.javaoperatorsdk.operator.Operator;

/**
 * An operator of the Java Operator SDK on ConfigMaps, each with a Secret that depends on it: reconciler and dependent
 * resource as its sample `webpage`, on a built-in kind.
 * https://github.com/operator-framework/java-operator-sdk/tree/main/sample-operators/webpage
 */
public class Runner {
    public static void main(String[] args) {
        Operator operator = new Operator();
        operator.register(new ConfigMapReconciler());
        operator.installShutdownHook(java.time.Duration.ofSeconds(1));
        operator.start();
    }
}
