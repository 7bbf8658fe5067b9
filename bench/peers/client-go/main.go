// The fake of client-go as a peer of the benchmark: the same work, in process and without a wire.
//
// Prints one line of JSON: Gets a second, seconds to list, deliveries a second to watchers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func configMap(name string, padding int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"bench": "peer"}},
		Data:       map[string]string{"n": "00000000", "padding": strings.Repeat("x", padding)},
	}
}

func number(index int) int {
	n, err := strconv.Atoi(os.Args[index])
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: client-go REQUESTS OBJECTS WATCHERS EVENTS")
		os.Exit(2)
	}
	requests, objects, watchers, events := number(1), number(2), number(3), number(4)
	ctx := context.Background()

	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, configMap("one", 130), metav1.CreateOptions{})
	check(err)
	began := time.Now()
	for range requests {
		_, err := maps.Get(ctx, "one", metav1.GetOptions{})
		check(err)
	}
	gets := float64(requests) / time.Since(began).Seconds()

	for n := range objects {
		_, err := maps.Create(ctx, configMap(fmt.Sprintf("list-%05d", n), 640), metav1.CreateOptions{})
		check(err)
	}
	began = time.Now()
	_, err = maps.List(ctx, metav1.ListOptions{})
	check(err)
	list := time.Since(began).Seconds()

	client = fake.NewClientset()
	maps = client.CoreV1().ConfigMaps("default")
	var seen sync.WaitGroup
	for range watchers {
		watch, err := maps.Watch(ctx, metav1.ListOptions{})
		check(err)
		go func() {
			for range watch.ResultChan() {
				seen.Done()
			}
		}()
	}
	began = time.Now()
	for n := range events {
		seen.Add(watchers)
		_, err := maps.Create(ctx, configMap(fmt.Sprintf("event-%05d", n), 640), metav1.CreateOptions{})
		check(err)
		seen.Wait()
	}
	deliveries := float64(watchers*events) / time.Since(began).Seconds()

	check(json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"gets_per_second":       gets,
		"list_seconds":          list,
		"deliveries_per_second": deliveries,
	}))
}
