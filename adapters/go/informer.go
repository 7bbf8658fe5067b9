package main

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// registrar is the common interface of informers of client-go and of controller-runtime's cache.
type registrar interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// report prints the events that the handlers of an informer receive, and `synced` after the first set.
func report(ctx context.Context, informer registrar) error {
	var once sync.Once
	synced := func() { once.Do(func() { emitAwake("synced") }) }
	later := func(event string, object any, keys message) {
		synced()
		emitObject(event, object, keys)
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if first {
				emitObject("add", object, nil)
				return
			}
			later("add", object, nil)
		},
		UpdateFunc: func(_, object any) { later("update", object, nil) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				later("delete", unknown.Obj, message{"final": false})
				return
			}
			later("delete", object, nil)
		},
	})
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			synced()
		case <-ctx.Done():
		}
	}()
	return nil
}

func watchErrors(ctx context.Context, reflector *cache.Reflector, err error) {
	emitError(err)
	cache.DefaultWatchErrorHandler(ctx, reflector, err)
}

func followInformer(ctx context.Context, given start) (func() []any, error) {
	from, err := newSource(given)
	if err != nil {
		return nil, err
	}
	informer := cache.NewSharedIndexInformer(from.listerWatcher(given.Options), from.object, 0, cache.Indexers{})
	if err := informer.SetWatchErrorHandlerWithContext(watchErrors); err != nil {
		return nil, err
	}
	if err := report(ctx, informer); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return informer.GetStore().List, nil
}
