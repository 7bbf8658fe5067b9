package components

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod creates a pod that no controller owns.
func (c cluster) pod(name string, spec corev1.PodSpec) {
	c.Helper()
	_, err := c.CoreV1().Pods(c.namespace).Create(c.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: spec},
		metav1.CreateOptions{})
	must(c.T, err)
}

func TestScheduler(t *testing.T) {
	t.Run("binds a pod to the node that fits", func(t *testing.T) {
		c := connect(t)
		node := c.node("a")
		c.pod("fits", c.containers("1"))
		c.eventually("bound", core("pods"), func(all []object) bool {
			status, _ := condition(named(all, "fits"), "PodScheduled")
			return text(named(all, "fits"), "spec", "nodeName") == node && status == "True"
		})
	})
	t.Run("spreads pods over nodes by what they request", func(t *testing.T) {
		c := connect(t)
		one, other := c.node("a"), c.node("b")
		c.pod("large", c.containers("3"))
		c.pod("too", c.containers("3"))
		c.eventually("bound to different nodes", core("pods"), func(all []object) bool {
			first := text(named(all, "large"), "spec", "nodeName")
			second := text(named(all, "too"), "spec", "nodeName")
			return first == one && second == other || first == other && second == one
		})
	})
	t.Run("reports a pod that fits nowhere and binds it once a node comes", func(t *testing.T) {
		c := connect(t)
		c.pod("waits", c.containers("1"))
		c.eventually("unschedulable", core("pods"), func(all []object) bool {
			status, reason := condition(named(all, "waits"), "PodScheduled")
			return status == "False" && reason == "Unschedulable"
		})
		c.eventually("event FailedScheduling", core("events"), func(all []object) bool {
			for _, each := range all {
				if text(each, "reason") == "FailedScheduling" {
					return true
				}
			}
			return false
		})
		node := c.node("late")
		c.eventually("bound", core("pods"), func(all []object) bool {
			return text(named(all, "waits"), "spec", "nodeName") == node
		})
	})
	t.Run("leaves a gated pod alone until its gate is removed", func(t *testing.T) {
		c := connect(t)
		node := c.node("a")
		spec := c.containers("1")
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}}
		c.pod("gated", spec)
		c.eventually("gated", core("pods"), func(all []object) bool {
			_, reason := condition(named(all, "gated"), "PodScheduled")
			return reason == "SchedulingGated"
		})
		pod, err := c.CoreV1().Pods(c.namespace).Get(t.Context(), "gated", metav1.GetOptions{})
		must(t, err)
		pod.Spec.SchedulingGates = nil
		pod.ResourceVersion = "" // whatever the scheduler has written since
		_, err = c.CoreV1().Pods(c.namespace).Update(t.Context(), pod, metav1.UpdateOptions{})
		must(t, err)
		c.eventually("bound", core("pods"), func(all []object) bool {
			return text(named(all, "gated"), "spec", "nodeName") == node
		})
	})
	t.Run("preempts a pod of lower priority", func(t *testing.T) {
		c := connect(t)
		c.node("a")
		low := c.containers("3")
		low.TerminationGracePeriodSeconds = new(int64)
		c.pod("low", low)
		c.eventually("bound", core("pods"), func(all []object) bool {
			return text(named(all, "low"), "spec", "nodeName") != ""
		})
		high := c.containers("3")
		high.PriorityClassName = "system-cluster-critical"
		c.pod("high", high)
		c.eventually("preempted", core("pods"), func(all []object) bool {
			high := named(all, "high")
			return named(all, "low") == nil && text(high, "spec", "nodeName") != ""
		})
	})
}
