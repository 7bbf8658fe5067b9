# Nodes: status, cordon, drain, taint
kubectl apply -f ../account.yaml
kubectl create -f nodes.yaml
kubectl get nodes
kubectl get nodes -o wide
kubectl get node n2 -o yaml
kubectl patch node n1 --type=merge -p '{"spec":{"taints":null}}' > /dev/null
kubectl patch node n2 --type=merge -p '{"spec":{"taints":null}}' > /dev/null
kubectl get node n1 -o yaml
kubectl describe node n1
kubectl get nodes -L zone --sort-by=.metadata.labels.zone
kubectl get nodes -l node-role.kubernetes.io/control-plane -o name
kubectl get nodes --field-selector=spec.unschedulable=true
kubectl get nodes -o custom-columns=NAME:.metadata.name,CPU:.status.capacity.cpu
# Taints and labels
kubectl label node n1 zone=c
kubectl label node n1 zone=c --overwrite
kubectl label node n1 node-role.kubernetes.io/worker=
kubectl get nodes
kubectl taint node n1 k=v:NoSchedule
kubectl taint node n1 k=v:NoSchedule
kubectl taint node n1 k=w:NoSchedule --overwrite
kubectl taint node n1 only:NoExecute
kubectl describe node n1
kubectl taint node n1 k-
kubectl taint node n1 only:NoExecute-
kubectl taint node n1 nosuch-
kubectl taint node n1 k=v:Sometimes
# Cordon and drain
kubectl cordon n1
kubectl cordon n1
kubectl get nodes
kubectl get nodes --field-selector=spec.unschedulable=true -o name
kubectl uncordon n1
kubectl uncordon n1
kubectl cordon nosuch
kubectl create -f pods.yaml
kubectl get pods -o wide --field-selector=spec.nodeName=n1
kubectl describe node n1
kubectl drain n1
kubectl drain n1 --ignore-daemonsets --force --dry-run=server
kubectl drain n1 --ignore-daemonsets --force --disable-eviction --grace-period=0
kubectl get pods -o wide
kubectl get nodes
kubectl create -f budget.yaml
kubectl drain n2 --timeout=1s --force
kubectl delete pdb --all
kubectl drain n2 --force --grace-period=0
kubectl uncordon n1 n2
kubectl top nodes
# Status of a node
kubectl create -f lease.yaml
kubectl get leases -n kube-node-lease
kubectl describe lease n1 -n kube-node-lease
kubectl patch node n1 --subresource=status -p '{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"starting"}]}}'
kubectl get nodes
kubectl wait node/n2 --for=condition=Ready --timeout=10s
kubectl get node n1 -o jsonpath='{.status.conditions}'
kubectl patch node n1 -p '{"spec":{"podCIDR":"192.0.2.0/24"}}'
kubectl patch node n1 -p '{"spec":{"podCIDR":"198.51.100.0/24"}}'
kubectl patch node n1 -p '{"spec":{"providerID":"x"}}'
kubectl delete node n1
kubectl delete nodes --all
kubectl get nodes
