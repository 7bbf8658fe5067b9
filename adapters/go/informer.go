package main

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// registrar is what informers of client-go and of controller-runtime's cache have in common.
type registrar interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// report prints what the handlers of an informer receive, and when it has synced.
func report(ctx context.Context, informer registrar) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { emitObject("add", object, nil) },
		UpdateFunc: func(_, object any) { emitObject("update", object, nil) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				emitObject("delete", unknown.Obj, message{"final": false})
				return
			}
			emitObject("delete", object, nil)
		},
	})
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			emitAwake("synced")
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
