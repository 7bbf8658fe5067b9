// Package v1 has the type of the project: a small stand-in for what kubebuilder scaffolds.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of Widget.
	GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

	builder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme registers Widget.
	AddToScheme = builder.AddToScheme
)

func init() {
	builder.Register(&Widget{}, &WidgetList{})
}

// WidgetSpec is the wanted state.
type WidgetSpec struct {
	Size int `json:"size"`
}

// WidgetStatus is the observed state.
type WidgetStatus struct {
	Size int `json:"size,omitempty"`
}

// Widget is reconciled to a ConfigMap.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &out
}
