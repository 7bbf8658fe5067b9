package main

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// watchListGate is an environment variable that client-go reads once, when the first client is made.
const watchListGate = "KUBE_FEATURE_WatchListClient"

// source lists and watches one collection through the dynamic or the metadata client.
type source struct {
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	client any
	object runtime.Object
}

func config() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
}

func newSource(given start) (source, error) {
	config, err := config()
	if err != nil {
		return source{}, err
	}
	resource := given.resource()
	if given.Options.MetadataOnly {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return source{}, err
		}
		collection := client.Resource(resource).Namespace(given.Namespace)
		list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return collection.List(ctx, options)
		}
		return source{list, collection.Watch, client, &metav1.PartialObjectMetadata{}}, nil
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return source{}, err
	}
	collection := client.Resource(resource).Namespace(given.Namespace)
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return collection.List(ctx, options)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(given.Resource.Kind))
	return source{list, collection.Watch, client, object}, nil
}

func (given start) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{
		Group: given.Resource.Group, Version: given.Resource.Version, Resource: given.Resource.Plural,
	}
}

// listerWatcher returns the source with these settings.
func (from source) listerWatcher(given options) cache.ListerWatcher {
	reads := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			given.tunesList(&options)
			return from.list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			given.tunesWatch(&options)
			return from.watch(ctx, options)
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(reads, from.client)
}

func (given options) selects(options *metav1.ListOptions) {
	options.LabelSelector = given.LabelSelector
	options.FieldSelector = given.FieldSelector
}

func (given options) tunesList(options *metav1.ListOptions) {
	given.selects(options)
	// Without a limit the pager reads everything at once, because a token expired.
	if given.PageSize != nil && options.Limit > 0 {
		options.Limit = *given.PageSize
	}
	if given.ResourceVersion != nil && options.ResourceVersion == "0" {
		options.ResourceVersion = *given.ResourceVersion
	}
}

func (given options) tunesWatch(options *metav1.ListOptions) {
	given.selects(options)
	if given.TimeoutSeconds != nil {
		options.TimeoutSeconds = given.TimeoutSeconds
	}
	// A streaming list ends with a bookmark.
	if given.AllowBookmarks != nil && options.SendInitialEvents == nil {
		options.AllowWatchBookmarks = *given.AllowBookmarks
	}
}
