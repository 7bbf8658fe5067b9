// Command informer is a client-go shared informer that prints the events of its handlers, one line of JSON each:
//
//	informer typed [COUNT]      ConfigMaps, through the clientset (which prefers protobuf), by COUNT informers that
//	                            share its connections
//	informer dynamic GVR        any resource, as group/version/resource, or version/resource of the core group
//	informer scenario           the target of `fake-apiserver run` in FAKE_APISERVER_TARGET, with the settings of
//	                            FAKE_APISERVER_CLIENT that an informer has, until SIGTERM
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
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

// follow prints the events of an informer until it is stopped; `delay` is the time its handlers take.
func follow(ctx context.Context, informer cache.SharedIndexInformer, delay time.Duration) error {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		printLine(line{Event: "error", Message: err.Error()})
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return err
	}
	handle := func(event line) {
		printLine(event)
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
		printLine(line{Event: "synced"})
	}
	<-ended
	return nil
}

// build creates the informers of the arguments, and returns the time their handlers take.
func build(args []string) ([]cache.SharedIndexInformer, time.Duration, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, 0, err
	}
	if len(args) == 1 && args[0] == "scenario" {
		informer, delay, err := ofScenario(config)
		return []cache.SharedIndexInformer{informer}, delay, err
	}
	informers, err := withDefaults(config, args)
	return informers, 0, err
}

// withDefaults creates informers with client-go's defaults.
func withDefaults(config *rest.Config, args []string) ([]cache.SharedIndexInformer, error) {
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

// about returns the line of a handler's event.
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

func printLine(event line) {
	out.Lock()
	defer out.Unlock()
	// Without a reader the program ends by SIGPIPE.
	_ = json.NewEncoder(os.Stdout).Encode(event)
}
