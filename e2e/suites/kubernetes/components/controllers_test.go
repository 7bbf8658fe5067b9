package components

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var labels = map[string]string{"app": "web"}

func template(c cluster) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: c.containers("100m")}
}

// served waits for what the controllers of service accounts and root certificates put into every namespace: pods are
// refused before the account exists.
func (c cluster) served() {
	c.Helper()
	c.eventually("service account default", core("serviceaccounts"), func(all []object) bool {
		return named(all, "default") != nil
	})
}

func (c cluster) deployment(replicas int32) {
	c.Helper()
	_, err := c.AppsV1().Deployments(c.namespace).Create(c.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(c),
		},
	}, metav1.CreateOptions{})
	must(c.T, err)
	c.pods(int(replicas))
}

// pods waits until there are so many pods, and none is being deleted.
func (c cluster) pods(count int) {
	c.Helper()
	c.eventually("pods", core("pods"), func(all []object) bool {
		for _, each := range all {
			if each.GetDeletionTimestamp() != nil {
				return false
			}
		}
		return len(all) == count
	})
}

// report sets the phase of all pods, as a kubelet would.
func (c cluster) report(phase corev1.PodPhase) {
	c.Helper()
	all, err := c.CoreV1().Pods(c.namespace).List(c.Context(), metav1.ListOptions{})
	must(c.T, err)
	for _, pod := range all.Items {
		pod.ResourceVersion = ""
		pod.Status.Phase = phase
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
		_, err := c.CoreV1().Pods(c.namespace).UpdateStatus(c.Context(), &pod, metav1.UpdateOptions{})
		must(c.T, err)
	}
}

func TestControllerManager(t *testing.T) {
	t.Run("a Deployment gets a ReplicaSet and its pods", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.deployment(3)
		c.report(corev1.PodRunning)
		c.eventually("status of the Deployment", in("apps", "v1", "deployments"), func(all []object) bool {
			status, reason := condition(named(all, "web"), "Progressing")
			return number(named(all, "web"), "status", "readyReplicas") == 3 &&
				status == "True" && reason == "NewReplicaSetAvailable"
		})
	})
	t.Run("a scaled Deployment loses pods", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.deployment(3)
		scale, err := c.AppsV1().Deployments(c.namespace).GetScale(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		scale.Spec.Replicas = 1
		scale.ResourceVersion = "" // whatever the controllers have written since
		_, err = c.AppsV1().Deployments(c.namespace).UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{})
		must(t, err)
		c.pods(1)
	})
	t.Run("a changed template rolls out a second ReplicaSet", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.deployment(1)
		c.report(corev1.PodRunning)
		web, err := c.AppsV1().Deployments(c.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		web.Spec.Template.Spec.Containers[0].Image = "none.invalid/newer"
		web.ResourceVersion = ""
		_, err = c.AppsV1().Deployments(c.namespace).Update(t.Context(), web, metav1.UpdateOptions{})
		must(t, err)
		c.eventually("two ReplicaSets", in("apps", "v1", "replicasets"), func(all []object) bool {
			return len(all) == 2
		})
	})
	t.Run("a Job is complete once its pod succeeded", func(t *testing.T) {
		c := connect(t)
		c.served()
		job := template(c)
		job.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := c.BatchV1().Jobs(c.namespace).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batchv1.JobSpec{Template: job},
		}, metav1.CreateOptions{})
		must(t, err)
		c.pods(1)
		c.report(corev1.PodSucceeded)
		c.eventually("condition Complete", in("batch", "v1", "jobs"), func(all []object) bool {
			status, _ := condition(named(all, "once"), "Complete")
			return status == "True" && number(named(all, "once"), "status", "succeeded") == 1
		})
	})
	t.Run("a StatefulSet makes its pods in order, with claims", func(t *testing.T) {
		c := connect(t)
		c.served()
		two := int32(2)
		_, err := c.AppsV1().StatefulSets(c.namespace).Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(c),
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: "data"},
					Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Resources: corev1.VolumeResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
						},
					},
				}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		c.pods(1)
		c.report(corev1.PodRunning)
		c.eventually("second pod", core("pods"), func(all []object) bool { return named(all, "db-1") != nil })
		c.eventually("claims", core("persistentvolumeclaims"), func(all []object) bool {
			return named(all, "data-db-0") != nil && named(all, "data-db-1") != nil
		})
	})
	t.Run("a DaemonSet puts a pod on every node", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.node("a")
		c.node("b")
		_, err := c.AppsV1().DaemonSets(c.namespace).Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "agent"},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(c),
			},
		}, metav1.CreateOptions{})
		must(t, err)
		c.pods(2)
	})
	t.Run("a Service's endpoints are the addresses of its ready pods", func(t *testing.T) {
		c := connect(t)
		c.served()
		_, err := c.CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		must(t, err)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels}, Spec: c.containers("100m")}
		pod.Spec.NodeName = c.node("a")
		pod, err = c.CoreV1().Pods(c.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		_, err = c.CoreV1().Pods(c.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		must(t, err)
		c.eventually("endpoint", in("discovery.k8s.io", "v1", "endpointslices"), func(all []object) bool {
			for _, slice := range all {
				endpoints, _ := slice.Object["endpoints"].([]any)
				if len(endpoints) == 1 {
					return true
				}
			}
			return false
		})
	})
	t.Run("a quota counts what is there", func(t *testing.T) {
		c := connect(t)
		c.served()
		_, err := c.CoreV1().ResourceQuotas(c.namespace).Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "few"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("2"), "count/configmaps": resource.MustParse("5"),
			}},
		}, metav1.CreateOptions{})
		must(t, err)
		used := func(want string) {
			t.Helper()
			c.eventually("used pods", core("resourcequotas"), func(all []object) bool {
				return text(named(all, "few"), "status", "used", "pods") == want
			})
		}
		used("0")
		_, err = c.CoreV1().Pods(c.namespace).Create(t.Context(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: c.containers("1")}, metav1.CreateOptions{})
		must(t, err)
		used("1")
		must(t, c.CoreV1().Pods(c.namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}))
		used("0")
	})
	t.Run("a budget refuses the eviction that breaks it", func(t *testing.T) {
		c := connect(t)
		c.served()
		one := intstr.FromInt32(1)
		_, err := c.PolicyV1().PodDisruptionBudgets(c.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "keep"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		c.deployment(2)
		c.report(corev1.PodRunning)
		c.eventually("one disruption allowed", in("policy", "v1", "poddisruptionbudgets"), func(all []object) bool {
			return number(named(all, "keep"), "status", "disruptionsAllowed") == 1
		})
		pods, err := c.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		evict := func(name string) error {
			return c.CoreV1().Pods(c.namespace).EvictV1(t.Context(),
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}})
		}
		must(t, evict(pods.Items[0].Name))
		if err := evict(pods.Items[1].Name); !apierrors.IsTooManyRequests(err) {
			t.Fatalf("the second eviction: %v", err)
		}
	})
	t.Run("a deleted owner takes its dependents along, background and foreground", func(t *testing.T) {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
			c := connect(t)
			c.served()
			c.deployment(2)
			must(t, c.AppsV1().Deployments(c.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &policy}))
			c.eventually("no ReplicaSet", in("apps", "v1", "replicasets"), func(all []object) bool { return len(all) == 0 })
			c.pods(0)
			c.eventually("no Deployment", in("apps", "v1", "deployments"), func(all []object) bool { return len(all) == 0 })
		}
	})
	t.Run("an orphaning deletion leaves pods without their owner", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.deployment(1)
		sets, err := c.AppsV1().ReplicaSets(c.namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		orphan := metav1.DeletePropagationOrphan
		must(t, c.AppsV1().Deployments(c.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &orphan}))
		c.eventually("ReplicaSet without an owner", in("apps", "v1", "replicasets"), func(all []object) bool {
			set := named(all, sets.Items[0].Name)
			return set != nil && len(set.GetOwnerReferences()) == 0
		})
		c.pods(1)
	})
	t.Run("a deleted namespace goes with everything in it", func(t *testing.T) {
		c := connect(t)
		c.served()
		c.deployment(1)
		must(t, c.CoreV1().Namespaces().Delete(t.Context(), c.namespace, metav1.DeleteOptions{}))
		c.eventually("namespace gone", core("namespaces"), func(all []object) bool { return named(all, c.namespace) == nil })
		left, err := c.CoreV1().ConfigMaps(c.namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(left.Items) > 0 {
			t.Fatalf("left behind: %v", left.Items)
		}
	})
}
