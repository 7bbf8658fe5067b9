package controller_test

import (
	"testing"

	"github.com/fake-apiserver/fake-apiserver/examples/go"
	"github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type object = map[string]any

// The controller keeps working after a 410 Gone, and the judge has nothing against its requests.
func TestControllerSurvives410(t *testing.T) {
	server := fakeapiserver.Start(t)
	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- controller.Run(t.Context(), config) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	client := kubernetes.NewForConfigOrDie(config)
	create := func(name string) {
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"greet": "yes"}}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	greeter := object{"user_agent": "greeter", "resource": "configmaps"}
	greeted := func(name string) {
		patch := object{"user_agent": "greeter", "verb": "patch", "name": name}
		server.Wait(fakeapiserver.Wait{When: object{"request": 1}, From: patch})
	}

	server.Wait(fakeapiserver.Wait{When: object{"watch": 1}, From: greeter})
	create("before")
	greeted("before")

	expired := server.Expire(greeter)
	if len(expired.Streams) == 0 {
		t.Fatal("the controller has no open watch")
	}
	create("after")
	// client-go lists by a watch, a streaming list.
	server.Wait(fakeapiserver.Wait{When: object{"request": 1}, From: greeter, Since: expired.NextRecord})
	greeted("after")

	server.ExpectNoViolations()
}
