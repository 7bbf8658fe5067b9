// Program operator-restarts exits with code 1 when its cache does not sync within five seconds, when a list or a watch fails
// other than by an expired version, or when it loses its lease, and leaves it to the kubelet to start it again:
// https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/config#Controller
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache: cache.Options{
			DefaultNamespaces:        map[string]cache.Config{metav1.NamespaceDefault: {}},
			DefaultWatchErrorHandler: exitOnError,
		},
		Controller:              config.Controller{CacheSyncTimeout: 5 * time.Second},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "restarts.crowd.example.com",
		LeaderElectionNamespace: metav1.NamespaceDefault,
		// The process exits when the manager stops, so the next one need not wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		ctrl.Log.Error(err, "could not create manager")
		os.Exit(1)
	}
	if err := ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Complete(&ConfigMapReconciler{Client: manager.GetClient()}); err != nil {
		ctrl.Log.Error(err, "could not create controller")
		os.Exit(1)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "manager stopped")
		os.Exit(1)
	}
}

func exitOnError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
		return
	}
	ctrl.Log.Error(err, "list or watch failed")
	os.Exit(1)
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
