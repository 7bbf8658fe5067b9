// Command informer is a client-go shared informer that prints what its handlers are told, one line of JSON each:
//
//	informer typed [COUNT]      ConfigMaps, through the clientset (which prefers protobuf), by so many informers that
//	                            share its connections
//	informer dynamic GVR        any resource, as group/version/resource, or version/resource of the core group
//	informer scenario           what `fake-apiserver run` names in FAKE_APISERVER_TARGET, with what an informer can be
//	                            given of FAKE_APISERVER_CLIENT, until SIGTERM
//
// It watches all namespaces of the cluster that KUBECONFIG names, with client-go's defaults, and ends when its standard
// input does, except as a scenario's client. The value of an object is its label `v`. The lines are described in e2e/src/client.rs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if len(args) != 1 || args[0] != "scenario" {
		go func() {
			defer stop()
			_, _ = io.Copy(io.Discard, os.Stdin)
		}()
	}

	informers, delay, err := build(args)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for _, informer := range informers {
		go func() { failed <- follow(ctx, informer, delay) }()
	}
	for range informers {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// follow prints what an informer tells, until it is stopped. Its handlers take so long.
func follow(ctx context.Context, informer cache.SharedIndexInformer, delay time.Duration) error {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		tell(line{Event: "error", Message: err.Error()})
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return err
	}
	handle := func(said line) {
		tell(said)
		time.Sleep(delay)
	}
	told, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(about("added", object)) },
		UpdateFunc: func(_, object any) { handle(about("updated", object)) },
		DeleteFunc: func(object any) { handle(about("deleted", object)) },
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	if cache.WaitForCacheSync(ctx.Done(), told.HasSynced) {
		tell(line{Event: "synced"})
	}
	<-ended
	return nil
}

// build makes the informers that the arguments ask for, and says how long their handlers take.
func build(args []string) ([]cache.SharedIndexInformer, time.Duration, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, 0, err
	}
	if len(args) == 1 && args[0] == "scenario" {
		informer, delay, err := ofScenario(config)
		return []cache.SharedIndexInformer{informer}, delay, err
	}
	informers, err := follows(config, args)
	return informers, 0, err
}

// follows makes informers with client-go's defaults.
func follows(config *rest.Config, args []string) ([]cache.SharedIndexInformer, error) {
	switch {
	case len(args) >= 1 && len(args) <= 2 && args[0] == "typed":
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		count := 1
		if len(args) == 2 {
			if count, err = strconv.Atoi(args[1]); err != nil {
				return nil, err
			}
		}
		var made []cache.SharedIndexInformer
		for range count {
			// A factory makes one informer of a kind.
			factory := informers.NewSharedInformerFactory(client, 0)
			made = append(made, factory.Core().V1().ConfigMaps().Informer())
		}
		return made, nil
	case len(args) == 2 && args[0] == "dynamic":
		resource, err := parse(args[1])
		if err != nil {
			return nil, err
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resource).Informer()
		return []cache.SharedIndexInformer{informer}, nil
	default:
		return nil, fmt.Errorf("usage: informer typed [COUNT] | informer dynamic GROUP/VERSION/RESOURCE | informer scenario")
	}
}

// target is what FAKE_APISERVER_TARGET holds: what to list and watch.
type target struct {
	Resource  string  `json:"resource"`
	Group     string  `json:"group"`
	Version   string  `json:"version"`
	Namespace *string `json:"namespace"`
}

// settings are those of FAKE_APISERVER_CLIENT that an informer can be given.
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

// defaultPageSize of a scenario asks for nothing: what an informer does by default is what it shall do.
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
				// The watch cache does not turn pages.
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

// ofScenario makes the informer that a scenario assumes.
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

func parse(text string) (schema.GroupVersionResource, error) {
	switch parts := strings.Split(text, "/"); len(parts) {
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}, nil
	case 3:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	default:
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no group/version/resource", text)
	}
}

type line struct {
	Event   string `json:"event"`
	Name    string `json:"name,omitempty"`
	Value   string `json:"value,omitempty"`
	Message string `json:"message,omitempty"`
}

// about is what a handler was told of an object.
func about(event string, object any) line {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	described, err := meta.Accessor(object)
	if err != nil {
		return line{Event: "error", Message: err.Error()}
	}
	return line{Event: event, Name: described.GetName(), Value: described.GetLabels()["v"]}
}

var out sync.Mutex

func tell(said line) {
	out.Lock()
	defer out.Unlock()
	// A line without a reader ends the program, by the signal that comes of it.
	_ = json.NewEncoder(os.Stdout).Encode(said)
}
