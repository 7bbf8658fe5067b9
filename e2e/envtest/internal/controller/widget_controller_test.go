package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/fake-apiserver/fake-apiserver/e2e/envtest/api/v1"
)

var (
	environment *envtest.Environment
	config      *rest.Config
)

// TestMain starts and stops the control plane, as the suite_test.go that kubebuilder scaffolds. Nothing here knows which
// programs it consists of: KUBEBUILDER_ASSETS names them.
func TestMain(m *testing.M) {
	if err := v1.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	environment = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	begin := time.Now()
	var err error
	if config, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not start:", err)
		os.Exit(1)
	}
	fmt.Printf("control plane started in %d ms\n", time.Since(begin).Milliseconds())
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the control plane did not stop:", err)
		code = 1
	}
	os.Exit(code)
}

func TestReconcile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	must(t, err)
	must(t, (&WidgetReconciler{Client: manager.GetClient()}).SetupWithManager(manager))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		must(t, <-ended)
	}()

	direct, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	widget := &v1.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: v1.WidgetSpec{Size: 3}}
	must(t, direct.Create(ctx, widget))
	reconciled(ctx, t, direct, widget, 3)

	patch := client.MergeFrom(widget.DeepCopyObject().(*v1.Widget))
	widget.Spec.Size = 5
	must(t, direct.Patch(ctx, widget, patch))
	reconciled(ctx, t, direct, widget, 5)

	widget.Spec.Size = -1
	if err := direct.Update(ctx, widget); !apierrors.IsInvalid(err) {
		t.Fatalf("a size below the minimum of the schema: %v", err)
	}
}

func TestUsersHaveNoRightsByDefault(t *testing.T) {
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"dev"}}, nil)
	must(t, err)
	jane, err := client.New(user.Config(), client.Options{Scheme: scheme.Scheme})
	must(t, err)
	err = jane.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "one"}, &corev1.ConfigMap{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a user without a role: %v", err)
	}
}

// reconciled waits until ConfigMap and status have the size.
func reconciled(ctx context.Context, t *testing.T, direct client.Client, widget *v1.Widget, size int) {
	t.Helper()
	key := client.ObjectKeyFromObject(widget)
	var config corev1.ConfigMap
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := direct.Get(ctx, key, &config); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if err := direct.Get(ctx, key, widget); err != nil {
			return false, err
		}
		return config.Data["size"] == fmt.Sprint(size) && widget.Status.Size == size, nil
	})
	if err != nil {
		t.Fatalf("waiting for size %d: %v; last seen %v and status %v", size, err, config.Data, widget.Status)
	}
	owner := metav1.GetControllerOf(&config)
	if owner == nil || owner.UID != widget.UID {
		t.Fatalf("the ConfigMap is not the Widget's: %v", owner)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
