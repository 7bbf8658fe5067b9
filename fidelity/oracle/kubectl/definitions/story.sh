# Custom resources: a definition, its objects, and invalid objects
kubectl apply -f widgets.yaml
kubectl wait crd/widgets.example.com --for=condition=Established --timeout=10s
kubectl get crd
kubectl get crd widgets.example.com -o yaml
kubectl describe crd widgets.example.com
kubectl api-resources --api-group=example.com
kubectl api-resources --categories=all --api-group=example.com -o name
kubectl explain widget
kubectl explain widget.spec
kubectl explain widget.spec.size
kubectl explain widget --recursive
kubectl explain widget --api-version=example.com/v2
kubectl explain widget.nosuch
# Objects
kubectl apply -f widget.yaml
kubectl apply -f widget.yaml
kubectl diff -f widget.yaml
kubectl get widgets
kubectl get wd -o wide
kubectl get widget
kubectl get wd lamp -o yaml
kubectl get widgets.v1.example.com lamp -o yaml
kubectl get widgets.v2.example.com
kubectl get all
kubectl describe widget lamp
kubectl get widgets -o jsonpath='{.items[*].spec.color}'
kubectl get widgets --sort-by=.spec.size -o name
kubectl get widgets --field-selector=metadata.name=lamp -o name
kubectl get widgets --field-selector=spec.color=red -o name
kubectl get widgets --field-selector=spec.size=3 -o name
kubectl create -f widget.yaml
kubectl replace -f widget.yaml
kubectl replace --force -f widget.yaml
kubectl label widget lamp t=1
kubectl annotate widget lamp note=x
KUBE_EDITOR='sed -i s/size:.3/size:\ 4/' kubectl edit widget lamp
# Invalid objects
kubectl patch widget lamp --type=merge -p '{"spec":{"size":11}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"color":"blue"}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"size":"x"}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"size":null}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"bogus":1}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"tags":["a","a"]}}'
kubectl patch widget lamp --type=merge -p '{"spec":{"name":"UPPER"}}'
kubectl patch widget lamp --type=merge --dry-run=server -p '{"spec":{"low":5,"high":1}}'
kubectl patch widget lamp --type=merge --dry-run=server -p '{"spec":{"fixed":"b"}}'
kubectl patch widget lamp -p '{"spec":{"size":4}}'
sed 's/size: 3/size: 3, bogus: 1/' widget.yaml | kubectl apply -f -
sed 's/size: 3/size: 3, bogus: 1/' widget.yaml | kubectl apply --validate=warn -f -
sed 's/size: 3/size: 3, bogus: 1/' widget.yaml | kubectl apply --validate=ignore -f -
sed 's/size: 3/size: 77, color: pink/' widget.yaml | kubectl apply -f -
sed 's/spec:.*/spec: {}/' widget.yaml | kubectl apply -f -
kubectl get widget lamp -o jsonpath='{.spec}'
# Subresources
kubectl patch widget lamp --type=merge --subresource=status -p '{"status":{"phase":"Up","replicas":1}}'
kubectl patch widget lamp --type=merge -p '{"status":{"phase":"Down"}}'
kubectl get widget lamp
kubectl wait widget/lamp --for=jsonpath='{.status.phase}'=Up --timeout=10s
kubectl scale widget lamp --replicas=3
kubectl scale widget lamp --replicas=4 --current-replicas=9
kubectl get widget lamp --subresource=scale
kubectl get widget lamp --subresource=scale -o yaml
kubectl get widget lamp --subresource=status -o name
kubectl get widget lamp -o jsonpath='{.spec.replicas} {.metadata.generation}'
kubectl autoscale widget lamp --max=3
# Server-side apply
kubectl apply --server-side -f widget.yaml
kubectl apply --server-side --force-conflicts -f widget.yaml
kubectl apply --server-side --field-manager=other -f tags.yaml
# Another scope, another version
kubectl apply -f clusters.yaml
kubectl wait crd/things.example.com --for=condition=Established --timeout=10s
kubectl create -f thing.yaml
kubectl get things
kubectl get things -A
kubectl get thing one -n nosuch
kubectl get things.v1beta1.example.com one -o yaml
kubectl get things.v1.example.com one -o yaml
kubectl describe thing one
kubectl scale thing one --replicas=1
kubectl patch thing one --subresource=status --type=merge -p '{}'
# Invalid definitions
kubectl create -f wrong.yaml
kubectl patch crd widgets.example.com --type=json -p '[{"op":"replace","path":"/spec/scope","value":"Cluster"}]'
kubectl patch crd widgets.example.com --type=json -p '[{"op":"replace","path":"/spec/versions/0/storage","value":false}]'
kubectl patch crd widgets.example.com --type=json -p '[{"op":"replace","path":"/spec/names/plural","value":"other"}]'
kubectl patch crd widgets.example.com --type=json -p '[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/new","value":{"type":"string"}}]'
kubectl delete crd nosuch.example.com
# Deletion
kubectl delete widget lamp
kubectl get widgets
kubectl delete -f widgets.yaml --wait=false
kubectl delete crd things.example.com
kubectl get things
