// Program client-go-metadata logs the ConfigMaps of a namespace with an informer that reads only their metadata:
// https://pkg.go.dev/k8s.io/client-go/metadata/metadatainformer#NewFilteredSharedInformerFactory
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
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
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}

	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 10*time.Minute, metav1.NamespaceDefault, nil)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { klog.InfoS("Added", "configmap", klog.KObj(obj.(*metav1.PartialObjectMetadata))) },
		UpdateFunc: func(_, obj any) {
			klog.InfoS("Updated", "configmap", klog.KObj(obj.(*metav1.PartialObjectMetadata)))
		},
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				klog.InfoS("Deleted", "configmap", key)
			}
		},
	}); err != nil {
		return err
	}

	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("cache did not sync")
	}
	klog.InfoS("Cache synced", "configmaps", len(informer.GetStore().ListKeys()))
	<-ctx.Done()
	return nil
}
