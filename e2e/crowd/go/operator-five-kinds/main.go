// Program operator-five-kinds has informers on five kinds and a workqueue, without a framework, and labels ConfigMaps. It
// follows sample-controller:
// https://github.com/kubernetes/sample-controller
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const seenLabel = "crowd.example.com/seen"

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

	factory := informers.NewSharedInformerFactoryWithOptions(client, 30*time.Second, informers.WithNamespace(metav1.NamespaceDefault))
	core := factory.Core().V1()
	configMaps := core.ConfigMaps()
	controller := &controller{
		client:     client,
		configMaps: configMaps.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	synced := []cache.InformerSynced{}
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"ConfigMap":  configMaps.Informer(),
		"Secret":     core.Secrets().Informer(),
		"Service":    core.Services().Informer(),
		"Deployment": factory.Apps().V1().Deployments().Informer(),
		"Pod":        core.Pods().Informer(),
	} {
		handle := controller.count(kind)
		if kind == "ConfigMap" {
			handle = controller.enqueue
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    handle,
			UpdateFunc: func(_, obj any) { handle(obj) },
			DeleteFunc: handle,
		}); err != nil {
			return err
		}
		synced = append(synced, informer.HasSynced)
	}

	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("failed to wait for caches to sync")
	}
	klog.InfoS("Starting workers")
	for range 2 {
		go wait.UntilWithContext(ctx, controller.runWorker, time.Second)
	}
	<-ctx.Done()
	controller.queue.ShutDown()
	return nil
}

type controller struct {
	client     kubernetes.Interface
	configMaps listers.ConfigMapLister
	queue      workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func (c *controller) enqueue(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err != nil {
		utilruntime.HandleError(err)
	} else {
		c.queue.Add(name)
	}
}

func (c *controller) count(kind string) func(any) {
	return func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			klog.V(2).InfoS("Changed", "kind", kind, "object", name)
		}
	}
}

func (c *controller) runWorker(ctx context.Context) {
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, name); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Error syncing; requeuing", "configmap", name)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

func (c *controller) sync(ctx context.Context, name cache.ObjectName) error {
	configMap, err := c.configMaps.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || configMap.Labels[seenLabel] == "true" {
		return err
	}
	_, err = c.client.CoreV1().ConfigMaps(name.Namespace).Patch(ctx, name.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+seenLabel+`":"true"}}}`), metav1.PatchOptions{FieldManager: "operator-five-kinds"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
