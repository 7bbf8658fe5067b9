// Program operator-two-replicas runs two replicas of an operator, as a Deployment with `replicas: 2` does. One is elected
// leader and the other waits for its lease:
// https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/leaderelection
package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const seenLabel = "crowd.example.com/seen"

func main() {
	ctrl.SetLogger(zap.New())
	if len(os.Args) > 1 && os.Args[1] == "replica" {
		replica()
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	var replicas sync.WaitGroup
	for range 2 {
		replicas.Go(func() { keepRunning(ctx) })
	}
	replicas.Wait()
}

// keepRunning restarts a replica that exits, with growing delays, as the kubelet does.
func keepRunning(ctx context.Context) {
	for delay := time.Second; ctx.Err() == nil; delay = min(2*delay, time.Minute) {
		process := exec.CommandContext(ctx, os.Args[0], "replica")
		process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
		process.Stdout, process.Stderr = os.Stderr, os.Stderr
		if err := process.Run(); err != nil && ctx.Err() == nil {
			ctrl.Log.Error(err, "replica exited", "restartIn", delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

func replica() {
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}},
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "two-replicas.crowd.example.com",
		LeaderElectionNamespace:       metav1.NamespaceDefault,
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

// ConfigMapReconciler labels ConfigMaps.
type ConfigMapReconciler struct {
	client.Client
}

// Reconcile labels the ConfigMap of a request.
func (r *ConfigMapReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if configMap.Labels[seenLabel] == "true" {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFrom(configMap.DeepCopy())
	metav1.SetMetaDataLabel(&configMap.ObjectMeta, seenLabel, "true")
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, &configMap, patch))
}
