package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
)

func followTyped(ctx context.Context, given start) (func() []any, error) {
	config, err := config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(given.Namespace), informers.WithTweakListOptions(given.Options.tunes))
	informer, err := factory.ForResource(given.resource())
	if err != nil {
		return nil, err
	}
	return followed(ctx, informer, factory.Start)
}

func followMetadata(ctx context.Context, given start) (func() []any, error) {
	config, err := config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, given.Namespace, given.Options.tunes)
	return followed(ctx, factory.ForResource(given.resource()), factory.Start)
}

// followed reports the events of a factory's informer, and starts the factory.
func followed(ctx context.Context, of informers.GenericInformer, start func(<-chan struct{})) (func() []any, error) {
	informer := of.Informer()
	if err := informer.SetWatchErrorHandlerWithContext(watchErrors); err != nil {
		return nil, err
	}
	if err := report(ctx, informer); err != nil {
		return nil, err
	}
	start(ctx.Done())
	return informer.GetStore().List, nil
}

// tunes is the TweakListOptions of a factory, which changes the options of lists and of watches. An informer requests
// bookmarks of each watch, and of nothing else.
func (given options) tunes(options *metav1.ListOptions) {
	if options.AllowWatchBookmarks {
		given.tunesWatch(options)
	} else {
		given.tunesList(options)
	}
}
