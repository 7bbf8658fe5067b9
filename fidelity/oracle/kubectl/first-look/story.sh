# Versions, API resources, explain
kubectl version
kubectl api-versions
kubectl api-resources
kubectl api-resources --sort-by=name --verbs=list,watch -o name
kubectl api-resources --namespaced=false -o wide
kubectl api-resources --api-group=apps
kubectl api-resources --categories=all
kubectl cluster-info
kubectl get --raw /healthz
kubectl get --raw '/readyz?verbose'
kubectl get --raw /livez
kubectl get --raw /api
kubectl get --raw /apis/apps
kubectl get --raw /nosuch
kubectl get namespaces
kubectl get namespaces -o wide --show-labels
kubectl get nodes
kubectl get pods
kubectl get pods -A
kubectl get services -A
kubectl get all -A
kubectl get events -A
# explain
kubectl explain pods
kubectl explain pod.spec.containers.ports
kubectl explain pod.spec.containers.livenessProbe.httpGet
kubectl explain deployment.spec.strategy --recursive
kubectl explain deployment.spec.template.spec.affinity --recursive
kubectl explain service.spec.type
kubectl explain ingress.spec.rules.http
kubectl explain cronjob.spec
kubectl explain hpa --api-version=autoscaling/v1
kubectl explain hpa.spec.metrics --api-version=autoscaling/v2
kubectl explain crd.spec.versions.schema
kubectl explain secret.data
kubectl explain configmap --output=plaintext-openapiv2
kubectl explain nosuch
kubectl explain pod.nosuch
kubectl explain pod.spec.nosuch
# Errors
kubectl get nosuch
kubectl get pods.nosuch.example
kubectl get pods.v2
kubectl api-resources --api-group=nosuch
kubectl get
kubectl nosuch
