// Command nodes stands in for kubelets: it registers two nodes and reports what kubelets would report of the pods bound to
// them, without running anything. A pod runs and is ready; one whose containers are not restarted has succeeded, unless
// they sleep; one that is being deleted is gone. It is for specs that need pods to get on, not for those that look into
// containers. Containers with the webhook servers of the specs do run, as processes of this machine (servers.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if isServer(os.Args[1:]) {
		if err := serve(os.Args[1:]); err != nil {
			os.Exit(1)
		}
		return
	}
	kubeconfig := flag.String("kubeconfig", "", "credentials of an administrator")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "nodes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, name := range []string{"node-1", "node-2"} {
		if err := register(ctx, client, name); err != nil {
			return err
		}
	}
	servers, err := newServers()
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	each := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			if err := handle(ctx, client, servers, pod); err != nil && !gone(err) {
				fmt.Fprintf(os.Stderr, "nodes: %s/%s: %v\n", pod.Namespace, pod.Name, err)
			}
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    each,
		UpdateFunc: func(_, object any) { each(object) },
		DeleteFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				servers.stop(pod.UID)
			}
		},
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	return nil
}

// gone reports whether a later event of the pod makes this one obsolete.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

func register(ctx context.Context, client kubernetes.Interface, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	made, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// Nobody takes it away: the node controller does not run.
	if len(made.Spec.Taints) > 0 {
		made.Spec.Taints = nil
		if made, err = client.CoreV1().Nodes().Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	made.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeHostName, Address: name},
		},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
		NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"},
	}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

// sleeps reports whether a container does nothing but sleep. The specs let them sleep longer than they look.
func sleeps(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool {
		return len(container.Command) > 0 && container.Command[0] == "sleep"
	})
}

// addresses counts the addresses given to pods.
var addresses atomic.Uint32

func handle(ctx context.Context, client kubernetes.Interface, servers *servers, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		servers.stop(pod.UID)
		now := int64(0)
		return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
	}
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	if isServer(pod.Spec.Containers[0].Args) {
		servers.start(ctx, client, pod)
		return nil
	}
	number := addresses.Add(1)
	return report(ctx, client, pod, fmt.Sprintf("198.18.%d.%d", number>>8&0xff, number&0xff))
}

func report(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, address string) error {
	pod = pod.DeepCopy()
	started := metav1.Now()
	status := &pod.Status
	status.HostIP, status.HostIPs = "192.0.2.1", []corev1.HostIP{{IP: "192.0.2.1"}}
	status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	status.StartTime = &started
	ready, state := corev1.ConditionTrue, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: started},
	}
	status.Phase = corev1.PodRunning
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && !sleeps(pod) {
		status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: started, FinishedAt: started,
		}}
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
	} {
		value := ready
		if kind == corev1.PodInitialized {
			value = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: value, LastTransitionTime: started,
		})
	}
	for _, container := range pod.Spec.Containers {
		up := ready == corev1.ConditionTrue
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image,
			ContainerID: "none://" + container.Name, State: state, Ready: up, Started: &up,
		})
	}
	_, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
