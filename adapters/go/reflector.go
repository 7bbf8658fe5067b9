package main

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// printer is a store that keeps nothing.
type printer struct{}

func (printer) Add(object any) error {
	emitObject("add", object, nil)
	return nil
}

func (printer) Update(object any) error {
	emitObject("update", object, nil)
	return nil
}

func (printer) Delete(object any) error {
	emitObject("delete", object, nil)
	return nil
}

func (printer) Replace(objects []any, _ string) error {
	emitAwake("init")
	for _, object := range objects {
		emitObject("init-apply", object, nil)
	}
	emitAwake("init-done")
	return nil
}

func (printer) Resync() error { return nil }

func followReflector(ctx context.Context, given start) (func() []any, error) {
	from, err := newSource(given)
	if err != nil {
		return nil, err
	}
	reflector := cache.NewReflectorWithOptions(from.listerWatcher(given.Options), from.object, printer{}, cache.ReflectorOptions{})
	go reflector.RunWithContext(ctx)
	return nil, nil
}
