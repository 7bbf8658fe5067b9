# Pods: run, get, describe, wait, delete
kubectl run early --image=nginx
kubectl delete pod early --force --ignore-not-found > /dev/null 2>&1
kubectl apply -f ../account.yaml
kubectl run web --image=nginx --port=80 --labels=app=web,tier=front --env=A=b
kubectl run web --image=nginx
kubectl run once --image=busybox --restart=Never --command -- sleep 1
kubectl run dry --image=nginx --dry-run=client -o yaml
kubectl run dry --image=nginx --dry-run=server -o yaml
kubectl run wrong --image=nginx --labels='not a label'
kubectl run UPPER --image=nginx
kubectl apply -f pods.yaml
kubectl get pods
kubectl get pods -o wide
kubectl get pod full -o yaml
kubectl get pod full -o json
kubectl get pod once -o yaml
kubectl describe pod full
kubectl describe pod once
kubectl describe pods -l app=web
kubectl describe pod nosuch
# Status, as written by a kubelet
kubectl patch pod full --subresource=status --type=merge --patch-file status.yaml
kubectl get pods
kubectl get pods -o wide
kubectl describe pod full
kubectl patch pod once --subresource=status --type=merge -p '{"status":{"phase":"Succeeded","containerStatuses":[{"name":"once","image":"busybox","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}'
kubectl patch pod web --subresource=status --type=merge -p '{"status":{"phase":"Pending","containerStatuses":[{"name":"web","image":"nginx","imageID":"","ready":false,"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}'
kubectl get pods
kubectl describe pod web
# Output formats
kubectl get pods -o name
kubectl get pods --no-headers
kubectl get pods --show-labels
kubectl get pods -L app,tier
kubectl get pods --show-kind
kubectl get pods -A
kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}'
kubectl get pods -o jsonpath-as-json='{.items[*].metadata.labels}'
kubectl get pods -o go-template='{{range .items}}{{.metadata.name}} {{.spec.nodeName}}{{"\n"}}{{end}}'
kubectl get pods -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName
kubectl get pods -o custom-columns-file=columns.txt
kubectl get pods -o kyaml -l app=web
kubectl get pods --sort-by=.metadata.name
kubectl get pods --sort-by='{.status.phase}'
kubectl get pods --sort-by=.metadata.labels.app
kubectl get pods --sort-by=.nosuch
kubectl get pods --chunk-size=1
kubectl get pods --server-print=false
kubectl get pods -o nosuch
kubectl get pods web full
kubectl get pods web nosuch
kubectl get pods web nosuch --ignore-not-found
kubectl get pod/web configmap/kube-root-ca.crt
kubectl get pods --subresource=status web
kubectl get pod full --subresource=resize -o name
# Selectors
kubectl get pods -l app=web
kubectl get pods -l 'app in (web,lone),tier'
kubectl get pods -l '!app' -o name
kubectl get pods -l app!=web -o name
kubectl get pods -l 'order>3' -o name
kubectl get pods --field-selector=status.phase=Running
kubectl get pods --field-selector=spec.nodeName=n1,status.phase!=Pending -o name
kubectl get pods --field-selector=metadata.name=web -o name
kubectl get pods --field-selector=spec.restartPolicy=Never -o name
kubectl get pods --field-selector=status.podIP=192.0.2.9 -o name
kubectl get pods --field-selector=spec.containers=x
kubectl get pods -l 'app=a,,b'
kubectl get pods -l 'app in web'
# wait
kubectl wait pod/full --for=condition=Ready --timeout=10s
kubectl wait pods -l app=lone --for=condition=Ready --timeout=10s
kubectl wait pod/full --for=jsonpath='{.status.phase}'=Running --timeout=10s
kubectl wait pod/full --for=jsonpath='{.status.podIP}' --timeout=10s
kubectl wait pod/full --for=condition=Nope --timeout=0s
kubectl wait pod/nosuch --for=condition=Ready --timeout=0s
kubectl wait pod/nosuch --for=delete --timeout=10s
kubectl wait pod/web --for=create --timeout=10s
# Requests that need a node
kubectl logs full
kubectl logs nosuch
kubectl exec full -c c -- ls
kubectl attach full
kubectl port-forward full 18999:80
kubectl cp full:/x /dev/null
kubectl top pods
kubectl debug full --image=busybox --target=c --quiet --attach=false
kubectl get pod full -o jsonpath='{.spec.ephemeralContainers[*].image}'
# Updates
kubectl label pod full x=y
kubectl annotate pod full note=hello
kubectl set image pod/full c=nginx:2
kubectl patch pod full -p '{"spec":{"nodeName":"other"}}'
kubectl patch pod full -p '{"spec":{"containers":[{"name":"c","command":["x"]}]}}'
kubectl patch pod full -p '{"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}'
kubectl patch pod full -p '{"spec":{"activeDeadlineSeconds":5}}'
kubectl patch pod full --subresource=resize -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"200m"}}}]}}'
kubectl patch pod web --subresource=ephemeralcontainers -p '{"spec":{"ephemeralContainers":[{"name":"e","image":"busybox"}]}}'
kubectl get pod full -o jsonpath='{.metadata.generation} {.spec.containers[0].image}'
kubectl create -f binding.yaml
kubectl create -f gated.yaml
kubectl get pod gated
kubectl patch pod gated --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"}]'
kubectl get pod gated
# Deletion
kubectl delete pod full --wait=false
kubectl get pod full
kubectl get pod full -o jsonpath='{.metadata.deletionGracePeriodSeconds}'
kubectl delete pod full --force --grace-period=0
kubectl delete pod web --now --wait=false
kubectl delete pod once --grace-period=5
kubectl delete pod nosuch
kubectl delete pod nosuch --ignore-not-found
kubectl delete pods -l app=none
kubectl delete pods
kubectl delete pods --all --dry-run=client
kubectl delete pods --all --force
kubectl get pods
