# Manifests: client-side and server-side apply, diff, edit, replace
kubectl apply -f ../account.yaml
kubectl apply --dry-run=client -f app.yaml
kubectl apply --dry-run=server -f app.yaml
kubectl get deployment web
kubectl diff -f app.yaml
kubectl apply -f app.yaml
kubectl apply -f app.yaml
kubectl diff -f app.yaml
kubectl get deployment web -o yaml
kubectl get service web -o yaml --show-managed-fields
kubectl get configmap settings -o json
kubectl diff -f app-2.yaml
kubectl apply -f app-2.yaml
kubectl apply -f app-2.yaml -o name
kubectl apply view-last-applied deployment/web
kubectl apply view-last-applied configmap/settings -o json
kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].image} {.metadata.generation}'
kubectl apply -f - < app.yaml
sed s/nginx:1.25/nginx:1.27/ app.yaml | kubectl diff -f -
sed s/nginx:1.25/nginx:1.27/ app.yaml | kubectl apply -f -
kubectl create configmap loose --from-literal=a=b
kubectl create configmap loose --from-literal=a=c --dry-run=client -o yaml | kubectl apply -f -
kubectl create configmap loose --from-literal=a=c --dry-run=client -o yaml | kubectl apply set-last-applied -f -
kubectl get configmap loose -o yaml
# Pruning
kubectl apply --prune --selector=app=web --dry-run=server -f app-2.yaml
kubectl apply -f extra.yaml
kubectl apply --prune --selector=app=web --prune-allowlist=core/v1/ConfigMap -f app-2.yaml
kubectl get configmaps --selector=app=web
# Replace
sed s/two/three/ settings.yaml | kubectl replace -f -
kubectl replace -f settings.yaml -o yaml
kubectl replace --force -f settings.yaml
sed s/settings/nosuch/ settings.yaml | kubectl replace -f -
kubectl create -f settings.yaml
kubectl create -f settings.yaml --save-config --dry-run=server
sed 's/name: settings/name: settings, resourceVersion: "1"/' settings.yaml | kubectl replace -f -
sed 's/name: settings/name: settings, uid: 11111111-2222-3333-4444-555555555555/' settings.yaml | kubectl replace -f -
# Edit
KUBE_EDITOR='sed -i s/two/edited/' kubectl edit configmap settings
KUBE_EDITOR=true kubectl edit configmap settings
KUBE_EDITOR='sed -i s/edited/again/' kubectl edit configmap settings -o yaml
KUBE_EDITOR='sed -i s/replicas:.2/replicas:\ -2/' kubectl edit deployment web
KUBE_EDITOR='sed -i s/phase/phase/' kubectl edit namespace default
KUBE_EDITOR=true kubectl edit configmap nosuch
# Server-side apply
kubectl apply --server-side -f settings.yaml
kubectl apply --server-side --force-conflicts -f settings.yaml
kubectl apply --server-side --field-manager=one -f side.yaml
kubectl apply --server-side --field-manager=two -f side.yaml
sed 's/"1"/"2"/' side.yaml | kubectl apply --server-side --field-manager=two -f -
sed 's/"1"/"2"/' side.yaml | kubectl apply --server-side --field-manager=two --force-conflicts -f -
sed '/a: /d' side.yaml | kubectl apply --server-side --field-manager=one -f -
kubectl get configmap side -o jsonpath='{.data}'
sed '/b: /d' side.yaml | kubectl apply --server-side --field-manager=two -f -
kubectl diff --server-side --field-manager=one -f side.yaml
kubectl apply --server-side --dry-run=server -f app.yaml
kubectl apply --server-side -f app.yaml
kubectl scale deployment web --replicas=5
kubectl apply --server-side --field-manager=other -f app.yaml
kubectl label configmap side x=y --field-manager=labeller
# Deletion by manifest
kubectl delete -f app.yaml --dry-run=server
kubectl delete -f app.yaml
kubectl delete -f app.yaml
kubectl delete -f app.yaml --ignore-not-found
