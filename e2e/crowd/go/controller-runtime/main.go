// Program controller-runtime is a manager with one controller, as the example of the package shows:
// https://pkg.go.dev/sigs.k8s.io/controller-runtime#example-package
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("controller-runtime")

	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		log.Error(err, "could not create manager")
		os.Exit(1)
	}
	if err := ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Complete(&ConfigMapReconciler{Client: manager.GetClient()}); err != nil {
		log.Error(err, "could not create controller")
		os.Exit(1)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "could not start manager")
		os.Exit(1)
	}
}

// ConfigMapReconciler logs ConfigMaps.
type ConfigMapReconciler struct {
	client.Client
}

// Reconcile reads the ConfigMap of a request.
func (r *ConfigMapReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctrl.LoggerFrom(ctx).Info("reconciled", "keys", len(configMap.Data))
	return ctrl.Result{}, nil
}
