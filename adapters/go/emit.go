package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"k8s.io/apimachinery/pkg/api/meta"
)

// message is one line of standard output.
type message map[string]any

var out sync.Mutex

// consumer counts the object events it may still receive before it pauses; -1: no pause.
var consumer = struct {
	*sync.Cond
	credit int
}{sync.NewCond(&sync.Mutex{}), -1}

func grant(credit int) {
	consumer.L.Lock()
	defer consumer.L.Unlock()
	consumer.credit = credit
	consumer.Broadcast()
}

// emitAwake writes a message about no object, after any pause of the consumer.
func emitAwake(event string) {
	consumer.L.Lock()
	defer consumer.L.Unlock()
	for consumer.credit == 0 {
		consumer.Wait()
	}
	emit(event, nil)
}

// emit writes one message.
func emit(event string, keys message) {
	line := message{"ev": event}
	for key, value := range keys {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		return
	}
	out.Lock()
	defer out.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n'))
}

// emitObject writes an event about an object, after any pause of the consumer.
func emitObject(event string, object any, keys message) {
	consumer.L.Lock()
	defer consumer.L.Unlock()
	for consumer.credit == 0 {
		consumer.Wait()
	}
	if consumer.credit > 0 {
		consumer.credit--
	}
	about := describe(object)
	for key, value := range keys {
		about[key] = value
	}
	emit(event, about)
}

// emitError writes an error of the library, with the fields of its Status, if any.
func emitError(err error) {
	keys := message{"message": err.Error()}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if code := status.Status().Code; code != 0 {
			keys["code"] = code
		}
		if reason := status.Status().Reason; reason != "" {
			keys["reason"] = reason
		}
	}
	emit("error", keys)
}

// describe returns the object for a message: whole, or its key and version if the library has a model of it.
func describe(object any) message {
	if whole, ok := object.(*unstructured.Unstructured); ok {
		return message{"obj": whole.Object}
	}
	keys := identity(object)
	if keys["uid"] != nil && keys["rv"] != nil {
		return keys
	}
	// Without UID or version the whole object is printed.
	return message{"obj": message{"metadata": message{
		"namespace": keys["ns"], "name": keys["name"], "uid": keys["uid"], "resourceVersion": keys["rv"],
	}}}
}

// identity returns key, UID and version of an object.
func identity(object any) message {
	about, err := meta.Accessor(object)
	if err != nil {
		return message{"name": fmt.Sprintf("%T", object)}
	}
	keys := message{"name": about.GetName()}
	for key, value := range map[string]string{
		"ns": about.GetNamespace(), "uid": string(about.GetUID()), "rv": about.GetResourceVersion(),
	} {
		if value != "" {
			keys[key] = value
		}
	}
	return keys
}
