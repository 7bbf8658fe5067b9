// Package components checks what kube-scheduler and kube-controller-manager do on a server: each test waits for watch
// events, never for time. The components are started by `cargo xtask suites`, not here; KUBECONFIG names the server.
package components

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// patience is how long a condition may take; only a failing test uses it up.
const patience = time.Minute

// cluster is a connection to the server, and a namespace for one test.
type cluster struct {
	*testing.T
	kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
}

// connect returns a client with a new namespace. Nothing is deleted afterwards: the server ends with the run.
func connect(t *testing.T) cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	objects, err := dynamic.NewForConfig(config)
	must(t, err)
	made, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}, metav1.CreateOptions{})
	must(t, err)
	return cluster{t, client, objects, made.Name}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// object is what conditions look at, whatever its type.
type object = *unstructured.Unstructured

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func in(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// eventually waits until holds is true of the objects of a resource in the test's namespace (cluster-scoped: of all).
func (c cluster) eventually(what string, of schema.GroupVersionResource, holds func([]object) bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	var client dynamic.ResourceInterface = c.dynamic.Resource(of)
	if of.Resource != "nodes" && of.Resource != "namespaces" {
		client = c.dynamic.Resource(of).Namespace(c.namespace)
	}
	current := map[string]object{}
	check := func() bool {
		all := make([]object, 0, len(current))
		for _, each := range current {
			all = append(all, each)
		}
		return holds(all)
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{},
		func(store cache.Store) (bool, error) {
			for _, each := range store.List() {
				one := each.(object)
				current[one.GetName()] = one
			}
			return check(), nil
		},
		func(event watch.Event) (bool, error) {
			one, ok := event.Object.(object)
			if !ok {
				return false, fmt.Errorf("unexpected event %v", event)
			}
			if event.Type == watch.Deleted {
				delete(current, one.GetName())
			} else {
				current[one.GetName()] = one
			}
			return check(), nil
		})
	if err != nil {
		c.Fatalf("%s: %v; last seen %d %s: %v", what, err, len(current), of.Resource, current)
	}
}

// named returns the object of that name, nil if there is none.
func named(all []object, name string) object {
	for _, each := range all {
		if each.GetName() == name {
			return each
		}
	}
	return nil
}

// text reads a string field, "" if it is missing.
func text(of object, path ...string) string {
	if of == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(of.Object, path...)
	return value
}

// number reads a number field, 0 if it is missing.
func number(of object, path ...string) int64 {
	if of == nil {
		return 0
	}
	value, _, _ := unstructured.NestedInt64(of.Object, path...)
	return value
}

// condition returns the status and the reason of a condition.
func condition(of object, kind string) (string, string) {
	if of == nil {
		return "", ""
	}
	conditions, _, _ := unstructured.NestedSlice(of.Object, "status", "conditions")
	for _, each := range conditions {
		if one, ok := each.(map[string]any); ok && one["type"] == kind {
			status, _ := one["status"].(string)
			reason, _ := one["reason"].(string)
			return status, reason
		}
	}
	return "", ""
}

// node creates a ready node, labelled with its name and the test's namespace.
func (c cluster) node(name string) string {
	c.Helper()
	name = c.namespace + "-" + name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"kubernetes.io/hostname": name, "suite": c.namespace,
	}}}
	_, err := c.CoreV1().Nodes().Create(c.Context(), node, metav1.CreateOptions{})
	must(c.T, err)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	// Controllers write nodes too, so both writes are patches.
	status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
	}})
	must(c.T, err)
	_, err = c.CoreV1().Nodes().Patch(c.Context(), name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
	must(c.T, err)
	// A server with the admission plugin TaintNodesByCondition taints new nodes until the node controller sees them ready.
	_, err = c.CoreV1().Nodes().Patch(c.Context(), name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	must(c.T, err)
	return name
}

// containers is a pod's spec for the test's own nodes, with a CPU request.
func (c cluster) containers(cpu string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeSelector: map[string]string{"suite": c.namespace},
		Containers: []corev1.Container{{Name: "c", Image: "none.invalid/image", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}},
	}
}
