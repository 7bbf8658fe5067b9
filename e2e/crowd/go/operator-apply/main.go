// Program operator-apply applies an object for each ConfigMap with server-side apply: a ConfigMap in namespace `team` if that
// exists, else a Secret beside it.
// https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/client#Writer
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	team       = "team"
	fieldOwner = client.FieldOwner("operator-apply")
	fromLabel  = "crowd.example.com/from"
)

func main() {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		ctrl.Log.Error(err, "could not create manager")
		os.Exit(1)
	}
	if err := ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Complete(&ConfigMapReconciler{Client: manager.GetClient(), Reader: manager.GetAPIReader()}); err != nil {
		ctrl.Log.Error(err, "could not create controller")
		os.Exit(1)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "manager stopped")
		os.Exit(1)
	}
}

// ConfigMapReconciler copies ConfigMaps.
type ConfigMapReconciler struct {
	client.Client
	// Reader reads namespaces, which are not in the cache.
	Reader client.Reader
}

// Reconcile applies the copy of a ConfigMap.
func (r *ConfigMapReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !configMap.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	var namespace corev1.Namespace
	switch err := r.Reader.Get(ctx, client.ObjectKey{Name: team}, &namespace); {
	case err == nil:
		// An owner in another namespace is not allowed, so a label names it.
		object := corev1apply.ConfigMap(request.Name, team).
			WithLabels(map[string]string{fromLabel: request.Namespace}).
			WithData(configMap.Data)
		return ctrl.Result{}, r.Apply(ctx, object, fieldOwner, client.ForceOwnership)
	case apierrors.IsNotFound(err):
		object := corev1apply.Secret(request.Name, request.Namespace).
			WithOwnerReferences(metav1apply.OwnerReference().
				WithAPIVersion("v1").
				WithKind("ConfigMap").
				WithName(configMap.Name).
				WithUID(configMap.UID).
				WithController(true).
				WithBlockOwnerDeletion(true)).
			WithStringData(configMap.Data)
		return ctrl.Result{}, r.Apply(ctx, object, fieldOwner, client.ForceOwnership)
	default:
		return ctrl.Result{}, err
	}
}
