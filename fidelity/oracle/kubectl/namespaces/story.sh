# Namespaces and the deletion of their contents
kubectl create namespace team
kubectl create namespace team --dry-run=server -o yaml
kubectl get namespace team -o yaml
kubectl describe namespace team
kubectl label namespace team a=b
kubectl label namespace team kubernetes.io/metadata.name=other --overwrite
kubectl get namespaces --show-labels
kubectl get namespaces -l a=b -o name
kubectl get namespaces --field-selector=status.phase=Active -o name
kubectl create configmap a -n team
kubectl create configmap b -n team
kubectl create configmap a -n default
kubectl get configmaps -n team
kubectl get configmaps -A
kubectl get configmaps -A --field-selector=metadata.namespace=team -o name
kubectl get configmaps -A -o custom-columns=NS:.metadata.namespace,N:.metadata.name
kubectl get configmap a -A
kubectl delete configmaps --all -n team --dry-run=server
kubectl create configmap held -n team
kubectl patch configmap held -n team -p '{"metadata":{"finalizers":["example.com/hold"]}}'
kubectl delete configmap held -n team --wait=false
kubectl get configmap held -n team -o jsonpath='{.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}'
kubectl patch configmap held -n team -p '{"metadata":{"finalizers":["example.com/other"]}}'
kubectl delete configmap held -n team --timeout=1s
kubectl patch configmap held -n team --type=merge -p '{"metadata":{"finalizers":null}}'
kubectl get configmap held -n team
kubectl delete namespace default
kubectl delete namespace kube-system
kubectl delete namespace team --wait=false
kubectl get namespace team
kubectl describe namespace team
kubectl create configmap late -n team
kubectl get configmaps -n team
kubectl delete namespace nosuch
kubectl create namespace other
kubectl config set-context --current --namespace=other > /dev/null
kubectl config view --minify -o jsonpath='{..namespace}'
kubectl create configmap here
kubectl get configmaps -A
kubectl get configmap here -n default
