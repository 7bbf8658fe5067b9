# Built-in objects of a cluster
kubectl get componentstatuses
kubectl get apiservices
kubectl get flowschemas
kubectl get prioritylevelconfigurations
kubectl get priorityclasses
kubectl get namespaces -o name
kubectl get services -A
kubectl get endpoints -A
kubectl get endpointslices -A
kubectl get configmaps -A -o name
kubectl get serviceaccounts -A
kubectl get roles -A
kubectl get clusterrole admin edit view cluster-admin
kubectl get clusterrolebinding cluster-admin
kubectl get storageclasses,ingressclasses,runtimeclasses
kubectl get validatingadmissionpolicies,mutatingadmissionpolicies
kubectl get servicecidrs
kubectl get ipaddresses
kubectl get storageversionmigrations
kubectl get csr
kubectl get crd
kubectl get pv
kubectl describe service kubernetes
kubectl get service kubernetes -o yaml
kubectl get namespace kube-system -o yaml
