package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func followCache(ctx context.Context, given start) (func() []any, error) {
	config, err := config()
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: given.Resource.Group, Version: given.Resource.Version, Kind: given.Resource.Kind}
	listKind := kind.GroupVersion().WithKind(kind.Kind + "List")
	resource := kind.GroupVersion().WithResource(given.Resource.Plural)
	// Discovery is not under test. With scope root, all namespaces are the same collection.
	mapper := meta.NewDefaultRESTMapper(nil)
	scope := meta.RESTScope(meta.RESTScopeRoot)
	settings := cache.Options{
		Mapper:                      mapper,
		DefaultWatchErrorHandler:    watchErrors,
		DefaultEnableWatchBookmarks: given.Options.AllowBookmarks,
	}
	if given.Namespace != "" {
		scope = meta.RESTScopeNamespace
		settings.DefaultNamespaces = map[string]cache.Config{given.Namespace: {}}
	}
	for _, kind := range []schema.GroupVersionKind{kind, listKind} {
		mapper.AddSpecific(kind, resource, resource, scope)
	}
	if settings.DefaultLabelSelector, err = labels.Parse(given.Options.LabelSelector); err != nil {
		return nil, err
	}
	if settings.DefaultFieldSelector, err = fields.ParseSelector(given.Options.FieldSelector); err != nil {
		return nil, err
	}
	objects, err := cache.New(config, settings)
	if err != nil {
		return nil, err
	}
	object, items := client.Object(&unstructured.Unstructured{}), client.ObjectList(&unstructured.UnstructuredList{})
	if given.Options.MetadataOnly {
		object, items = &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	items.GetObjectKind().SetGroupVersionKind(listKind)
	informer, err := objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if err := report(ctx, informer); err != nil {
		return nil, err
	}
	go func() {
		if err := objects.Start(ctx); err != nil {
			emitError(err)
			emit("end", nil)
		}
	}()
	return func() []any { return listed(ctx, objects, items) }, nil
}

func listed(ctx context.Context, objects client.Reader, items client.ObjectList) []any {
	// The cache blocks its readers until it has synced.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found := items.DeepCopyObject().(client.ObjectList)
	if err := objects.List(ctx, found); err != nil {
		return nil
	}
	var all []any
	_ = meta.EachListItem(found, func(object runtime.Object) error {
		all = append(all, object)
		return nil
	})
	return all
}
