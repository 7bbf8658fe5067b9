package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// target is FAKE_APISERVER_TARGET: the collection to list and watch.
type target struct {
	Resource  string  `json:"resource"`
	Group     string  `json:"group"`
	Version   string  `json:"version"`
	Namespace *string `json:"namespace"`
}

// settings are those of FAKE_APISERVER_CLIENT that an informer has.
type settings struct {
	Mode          string  `json:"mode"`
	Object        *string `json:"object"`
	Labels        *string `json:"labels"`
	Fields        *string `json:"fields"`
	Timeout       *string `json:"timeout"`
	ListSemantic  string  `json:"list_semantic"`
	PageSize      any     `json:"page_size"`
	Bookmarks     bool    `json:"bookmarks"`
	ConsumerDelay string  `json:"consumer_delay"`
}

// defaultPageSize is the scenario's default, with which an informer keeps its own default.
const defaultPageSize = 500

// source lists and watches one collection, as the dynamic and the metadata client do.
type source struct {
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	client any
	object runtime.Object
}

func (from source) informer(given settings) (cache.SharedIndexInformer, error) {
	fields := ptr.Deref(given.Fields, "")
	if given.Object != nil {
		fields = "metadata.name=" + *given.Object
	}
	var lifetime *int64
	if given.Timeout != nil {
		timeout, err := time.ParseDuration(*given.Timeout)
		if err != nil {
			return nil, err
		}
		lifetime = ptr.To(int64(timeout.Seconds()))
	}
	pageSize, paged := given.PageSize.(float64)
	paged = paged && pageSize != defaultPageSize
	tweak := func(options *metav1.ListOptions) {
		options.LabelSelector = ptr.Deref(given.Labels, "")
		options.FieldSelector = fields
	}
	reads := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			tweak(&options)
			// Without a limit the pager reads everything at once, because a token expired.
			if paged && options.Limit > 0 {
				options.Limit = int64(pageSize)
				// The watch cache does not page.
				if options.ResourceVersion == "0" && given.ListSemantic == "most_recent" {
					options.ResourceVersion = ""
				}
			}
			return from.list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			tweak(&options)
			if lifetime != nil {
				options.TimeoutSeconds = lifetime
			}
			if !given.Bookmarks && options.SendInitialEvents == nil {
				options.AllowWatchBookmarks = false
			}
			return from.watch(ctx, options)
		},
	}
	lister := cache.ToListWatcherWithWatchListSemantics(reads, from.client)
	return cache.NewSharedIndexInformer(lister, from.object, 0, cache.Indexers{}), nil
}

// ofScenario creates the informer that a scenario assumes.
func ofScenario(config *rest.Config) (cache.SharedIndexInformer, time.Duration, error) {
	var read target
	if err := json.Unmarshal([]byte(os.Getenv("FAKE_APISERVER_TARGET")), &read); err != nil {
		return nil, 0, fmt.Errorf("FAKE_APISERVER_TARGET: %w", err)
	}
	var given settings
	if err := json.Unmarshal([]byte(os.Getenv("FAKE_APISERVER_CLIENT")), &given); err != nil {
		return nil, 0, fmt.Errorf("FAKE_APISERVER_CLIENT: %w", err)
	}
	delay, err := time.ParseDuration(given.ConsumerDelay)
	if err != nil {
		return nil, 0, err
	}
	plural, _, _ := strings.Cut(read.Resource, ".")
	resource := schema.GroupVersionResource{Group: read.Group, Version: read.Version, Resource: plural}
	namespace := ptr.Deref(read.Namespace, metav1.NamespaceAll)

	var from source
	if given.Mode == "metadata" {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, 0, err
		}
		collection := client.Resource(resource).Namespace(namespace)
		from = source{
			list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return collection.List(ctx, options)
			},
			watch:  collection.Watch,
			client: client,
			object: &metav1.PartialObjectMetadata{},
		}
	} else {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, 0, err
		}
		collection := client.Resource(resource).Namespace(namespace)
		from = source{
			list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return collection.List(ctx, options)
			},
			watch:  collection.Watch,
			client: client,
			object: &unstructured.Unstructured{},
		}
	}
	informer, err := from.informer(given)
	return informer, delay, err
}
