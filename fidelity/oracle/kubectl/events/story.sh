# Events as controllers write them
kubectl create configmap about --from-literal=a=b
kubectl create -f events.yaml
kubectl events
kubectl events -A
kubectl events --for configmap/about
kubectl events --types=Warning
kubectl events -o name
kubectl get events
kubectl get events -o wide
kubectl get events --sort-by=.metadata.name -o name
kubectl get events --field-selector=type=Warning -o name
kubectl get events --field-selector=involvedObject.name=about,reason=Started -o name
kubectl get events.events.k8s.io
kubectl get events.events.k8s.io new -o yaml
kubectl get event old -o yaml
kubectl describe event old
kubectl describe configmap about
kubectl get events --field-selector=involvedObject.nosuch=x
kubectl create -f wrong.yaml
kubectl delete events --all
kubectl events
