// Package controller annotates ConfigMaps: one labelled greet=yes gets the annotation greeting.
package controller

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Run reconciles until the context ends.
func Run(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "greeter"))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	configMaps := factory.Core().V1().ConfigMaps()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	defer queue.ShutDown()
	enqueue := func(object any) {
		if name, err := cache.ObjectToName(object); err == nil {
			queue.Add(name)
		}
	}
	if _, err := configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	context.AfterFunc(ctx, queue.ShutDown)
	for {
		name, ended := queue.Get()
		if ended {
			return nil
		}
		object, err := configMaps.Lister().ConfigMaps(name.Namespace).Get(name.Name)
		if err == nil {
			err = greet(ctx, client, object)
		}
		if err != nil {
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

func greet(ctx context.Context, client kubernetes.Interface, object *corev1.ConfigMap) error {
	if object.Labels["greet"] != "yes" || object.Annotations["greeting"] != "" {
		return nil
	}
	annotations := map[string]any{"annotations": map[string]string{"greeting": "hello " + object.Name}}
	patch, err := json.Marshal(map[string]any{"metadata": annotations})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
