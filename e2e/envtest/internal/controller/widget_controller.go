// Package controller reconciles Widgets.
package controller

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/fake-apiserver/fake-apiserver/e2e/envtest/api/v1"
)

// WidgetReconciler writes the size of a Widget into a ConfigMap of the same name.
type WidgetReconciler struct {
	client.Client
}

// Reconcile brings the ConfigMap and the status up to date.
func (r *WidgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget v1.Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"size": strconv.Itoa(widget.Spec.Size)}
		return controllerutil.SetControllerReference(&widget, config, r.Scheme())
	})
	if err != nil || widget.Status.Size == widget.Spec.Size {
		return ctrl.Result{}, err
	}
	widget.Status.Size = widget.Spec.Size
	return ctrl.Result{}, r.Status().Update(ctx, &widget)
}

// SetupWithManager registers the reconciler.
func (r *WidgetReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&v1.Widget{}).Owns(&corev1.ConfigMap{}).Complete(r)
}
