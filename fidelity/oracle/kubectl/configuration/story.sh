# Config maps, secrets, kustomize
kubectl create configmap literals --from-literal=a=b --from-literal=c=d
kubectl create configmap file --from-file=base/app.properties
kubectl create configmap named --from-file=key=base/app.properties
kubectl create configmap folder --from-file=base
kubectl create configmap env --from-env-file=base/app.properties
kubectl create configmap literals --from-literal=a=b
kubectl create configmap 'Not A Name' --from-literal=a=b
kubectl create configmap bad --from-literal='not a key=b'
kubectl create configmap bad --from-file=nosuch
kubectl get configmaps
kubectl get configmap env -o yaml
kubectl get configmap file -o jsonpath='{.data}'
kubectl describe configmap literals
kubectl describe configmap file
kubectl create secret generic plain --from-literal=a=b
kubectl create secret generic typed --from-literal=a=b --type=example.com/own
kubectl create secret docker-registry registry --docker-server=r.example.com --docker-username=u --docker-password=p
kubectl create secret generic wrong --from-literal=a=b --type=kubernetes.io/tls
kubectl create secret generic wrong --type=kubernetes.io/basic-auth
kubectl create -f secrets.yaml
kubectl get secrets
kubectl get secret plain -o yaml
kubectl get secret plain -o jsonpath='{.data.a}'
kubectl get secret plain -o go-template='{{.data.a | base64decode}}'
kubectl get secrets --field-selector=type=Opaque
kubectl describe secret plain
kubectl describe secret registry
kubectl get secret fixed -o yaml
kubectl patch secret fixed -p '{"stringData":{"a":"c"}}'
kubectl patch secret fixed -p '{"metadata":{"labels":{"a":"b"}}}'
kubectl patch secret plain -p '{"type":"other"}'
kubectl patch secret plain -p '{"data":{"a":"not base64!"}}'
kubectl patch configmap literals -p '{"immutable":true}'
kubectl patch configmap literals -p '{"immutable":false}'
kubectl patch configmap literals -p '{"data":{"a":"z"}}'
kubectl patch configmap literals -p '{"binaryData":{"a":"eg=="}}'
# Kustomize
kubectl kustomize overlay
kubectl apply -k overlay --dry-run=server
kubectl apply -k overlay
kubectl apply -k overlay
kubectl diff -k overlay
kubectl get -k overlay
kubectl get deployments,configmaps -l team=a -o name
kubectl delete -k overlay
kubectl get -k overlay
# Deletion
kubectl delete configmap,secret literals typed
kubectl delete configmaps --field-selector=metadata.name=env
kubectl delete configmaps --all
kubectl get configmaps,secrets
