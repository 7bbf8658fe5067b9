# Patches of all types, labels, annotations
kubectl create -f objects.yaml
# Strategic merge
kubectl patch deployment web -p '{"spec":{"replicas":3}}'
kubectl patch deployment web -p '{"spec":{"replicas":3}}'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"nginx:2"}]}}}}'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"busybox"}]}}}}'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"c"}]}}}}'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"d","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}}}}'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"d","$setElementOrder/env":[{"name":"B"},{"name":"A"}],"env":[{"name":"A","value":"3"}]}]}}}}'
kubectl patch deployment web -p '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}'
kubectl patch deployment web --patch-file patch.yaml
kubectl patch -f objects.yaml -p '{"metadata":{"labels":{"all":"yes"}}}'
kubectl get deployment web -o yaml
# Merge
kubectl patch configmap settings --type=merge -p '{"data":{"a":null,"c":"3"}}'
kubectl patch configmap settings --type=merge -p '{"data":{"a":null,"c":"3"}}'
kubectl patch deployment web --type=merge -p '{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"nginx"}]}}}}'
kubectl get configmap settings -o jsonpath='{.data}'
kubectl patch configmap settings --type=merge -p 'b: from yaml'
kubectl patch configmap settings --type=merge -p '{"data":{"n":1}}'
kubectl patch configmap settings --type=merge -p '{"metadata":{"name":"other"}}'
kubectl patch configmap settings --type=merge -p '{"metadata":{"resourceVersion":"1"}}'
kubectl patch configmap settings --type=merge -p '{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}'
# JSON
kubectl patch configmap settings --type=json -p '[{"op":"add","path":"/data/j","value":"k"}]'
kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/j","value":"k"},{"op":"replace","path":"/data/j","value":"l"}]'
kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/j","value":"zzz"}]'
kubectl patch configmap settings --type=json -p '[{"op":"remove","path":"/data/nosuch"}]'
kubectl patch configmap settings --type=json -p '[{"op":"replace","path":"/data/nosuch","value":"x"}]'
kubectl patch configmap settings --type=json -p '[{"op":"copy","from":"/data/j","path":"/data/m"},{"op":"move","from":"/data/j","path":"/data/o"}]'
kubectl patch configmap settings --type=json -p '[{"op":"nosuch","path":"/data"}]'
kubectl patch configmap settings --type=json -p '{"op":"add"}'
kubectl patch configmap settings --type=json -p '[{"op":"add","path":"/metadata/labels/not a label","value":"x"}]'
kubectl patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"last","image":"x"}}]'
kubectl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/containers/9"}]'
kubectl get configmap settings -o json
# Mistakes
kubectl patch configmap settings --type=nosuch -p '{}'
kubectl patch configmap settings -p '{'
kubectl patch configmap settings -p '[]'
kubectl patch configmap nosuch -p '{"data":{"a":"b"}}'
kubectl patch deployment web -p '{"spec":{"nosuch":1}}'
kubectl patch deployment web -p '{"spec":{"replicas":"many"}}'
kubectl patch deployment web --type=json -p '[{"op":"replace","path":"/spec/replicas","value":"many"}]'
kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"image":"without-a-name"}]}}}}'
kubectl patch deployment web -p '{"metadata":{"labels":{"bad label":"x"}}}'
kubectl patch deployment web --subresource=status -p '{"status":{"replicas":2}}'
kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":7}}'
kubectl patch deployment web --subresource=scale -p '{"spec":{"replicas":8}}'
kubectl patch deployment web --subresource=nosuch -p '{}'
kubectl patch configmap settings --subresource=status -p '{}'
kubectl patch deployment web --dry-run=server -p '{"spec":{"replicas":9}}'
kubectl patch deployment web --dry-run=client -p '{"spec":{"replicas":9}}' -o jsonpath='{.spec.replicas}'
kubectl patch deployment web --local -f objects.yaml -p '{"metadata":{"labels":{"l":"m"}}}' -o name
# Labels and annotations
kubectl label configmap settings x=y
kubectl label configmap settings x=z
kubectl label configmap settings x=y
kubectl label configmap settings x=z --overwrite
kubectl label configmap settings x-
kubectl label configmap settings x-
kubectl label configmap settings 'bad key=x'
kubectl label configmap settings x='bad value'
kubectl label configmap settings x=y --resource-version=1
kubectl label configmap nosuch x=y
kubectl label configmaps --all everywhere=yes
kubectl label configmaps -l everywhere=yes everywhere-
kubectl label configmap settings --list | sort
kubectl label deployment,configmap -l all=yes both=1 --dry-run=server
kubectl annotate configmap settings note='some text' other=x
kubectl annotate configmap settings note=again
kubectl annotate configmap settings note=again --overwrite
kubectl annotate configmap settings other-
kubectl annotate configmap settings --list | sort
kubectl annotate configmaps --all a=b --overwrite -o name
kubectl annotate configmap settings 'bad key'=x
kubectl get configmap settings -o yaml
