package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/clock"
)

var words = map[watch.EventType]string{watch.Added: "add", watch.Modified: "update", watch.Deleted: "delete"}

// followRetryWatcher lists, watches from the list's version, and lists again after the RetryWatcher gave up. The delays
// between lists are those of a Reflector: they belong to the caller, not to the library.
func followRetryWatcher(ctx context.Context, given start) (func() []any, error) {
	from, err := newSource(given)
	if err != nil {
		return nil, err
	}
	backoff := wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Steps: 6, Cap: 30 * time.Second, Jitter: 1}
	delays := backoff.DelayWithReset(clock.RealClock{}, 2*time.Minute)
	go func() {
		_ = delays.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := listAndWatch(ctx, from, given.Options); err != nil {
				emitError(err)
			}
			return false, nil
		})
	}()
	return nil, nil
}

// listAndWatch returns when the list failed or the watch ended.
func listAndWatch(ctx context.Context, from source, given options) error {
	pages := pager.New(from.list)
	if given.PageSize != nil {
		pages.PageSize = *given.PageSize
	}
	selected := metav1.ListOptions{}
	given.selects(&selected)
	list, _, err := pages.ListWithAlloc(ctx, selected)
	if err != nil {
		return err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	emitAwake("init")
	_ = meta.EachListItem(list, func(object runtime.Object) error {
		emitObject("init-apply", object, nil)
		return nil
	})
	emitAwake("init-done")

	watches := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		given.selects(&options)
		return from.watch(ctx, options)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, about.GetResourceVersion(), watches)
	if err != nil {
		return err
	}
	var failure error
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			failure = errors.FromObject(event.Object)
			continue
		}
		emitObject(words[event.Type], event.Object, nil)
	}
	return failure
}
