# Common mistakes and their errors
kubectl apply -f ../account.yaml
kubectl create namespace team
kubectl create namespace team
kubectl create namespace 'Not A Name'
kubectl create configmap a -n nosuch
kubectl create configmap a
kubectl create configmap a
kubectl get pod nosuch
kubectl get deployment nosuch -o yaml
kubectl get pods -n nosuch
kubectl delete pod nosuch
kubectl delete pod
kubectl delete deployment nosuch service/nosuch
kubectl describe pod nosuch
kubectl describe nosuch nosuch
kubectl get pods -l 'a=b,,c'
kubectl get pods -l 'a in ('
kubectl get pods --field-selector=bogus=1
kubectl get services --field-selector=spec.bogus=1
kubectl get configmaps --field-selector=nonsense
kubectl get pods --sort-by='{.bad'
kubectl get pods -o jsonpath='{.bad'
kubectl get configmap a -o jsonpath='{.nosuch}'
kubectl get configmap a -o go-template='{{.nosuch.x}}'
kubectl get configmap a -o custom-columns=X
# Unknown fields
kubectl create -f unknown.yaml
kubectl create -f unknown.yaml --validate=strict
kubectl create -f unknown.yaml --validate=warn
kubectl create -f unknown.yaml --validate=ignore
kubectl apply -f unknown.yaml --validate=false
kubectl create -f twice.yaml
kubectl create -f twice.yaml --validate=warn
kubectl create -f types.yaml
kubectl create -f types.yaml --validate=false
# Invalid objects
kubectl create -f pods.yaml
kubectl create -f workloads.yaml
kubectl create -f others.yaml
kubectl apply -f pods.yaml
kubectl apply --server-side -f workloads.yaml
# Files
kubectl create -f nosuch.yaml
kubectl create -f kinds.yaml
kubectl apply -f kinds.yaml
printf 'not: [yaml' | kubectl create -f -
printf '' | kubectl create -f -
printf 'apiVersion: v1' | kubectl create -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"},"data":{"a":1}}' | kubectl create -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"made-"}}' | kubectl create -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"made-"}}' | kubectl apply -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}' | kubectl create -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}}' | kubectl create -n default -f -
printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"5"}}' | kubectl create -f -
# Conflict
old=$(kubectl get configmap a -o yaml); kubectl label configmap a x=y; echo "$old" | kubectl replace -f -
kubectl patch configmap a -p '{"metadata":{"resourceVersion":"1"}}'
kubectl delete --raw /api/v1/namespaces/default/configmaps/a?dryRun=Nope
kubectl get --raw '/api/v1/pods?limit=x'
kubectl get --raw '/api/v1/pods?resourceVersion=x'
kubectl get --raw '/api/v1/pods?continue=x'
kubectl get --raw '/api/v1/nosuch'
kubectl create --raw /api/v1/namespaces/default/configmaps -f types.yaml
kubectl scale configmap a --replicas=1
kubectl rollout status configmap/a
kubectl autoscale configmap a --max=2
kubectl expose configmap a
kubectl label configmap a x
kubectl delete configmaps --all -l a=b
kubectl delete configmap a --cascade=sometimes
kubectl delete configmap a --grace-period=-5
