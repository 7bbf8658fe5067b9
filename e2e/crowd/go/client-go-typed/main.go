// Program client-go-typed logs the ConfigMaps of a namespace with an informer, as the comment on SharedInformerFactory shows:
// https://pkg.go.dev/k8s.io/client-go/informers#SharedInformerFactory
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	defer factory.Shutdown()
	informer := factory.Core().V1().ConfigMaps().Informer()
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { klog.InfoS("Added", "configmap", klog.KObj(obj.(*corev1.ConfigMap))) },
		UpdateFunc: func(_, obj any) { klog.InfoS("Updated", "configmap", klog.KObj(obj.(*corev1.ConfigMap))) },
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				klog.InfoS("Deleted", "configmap", key)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("register event handler: %w", err)
	}
	defer informer.RemoveEventHandler(handle) //nolint:errcheck

	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	if !cache.WaitFor(ctx, "event handler sync", handle.HasSyncedChecker()) {
		return fmt.Errorf("sync event handler: %w", context.Cause(ctx))
	}
	klog.InfoS("Cache synced", "configmaps", len(informer.GetStore().ListKeys()))
	<-ctx.Done()
	return nil
}
