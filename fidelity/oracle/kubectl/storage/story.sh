# Volumes, claims, storage classes, CSI objects
kubectl apply -f storage.yaml
kubectl get persistentvolumes,persistentvolumeclaims
kubectl get pv -o wide
kubectl get pvc -o wide
kubectl get pvc disk -o yaml
kubectl get pv vol -o yaml
kubectl describe pv vol
kubectl describe pvc disk
kubectl get storageclasses
kubectl get storageclass fast -o yaml
kubectl describe storageclass fast
kubectl get csidrivers,csinodes,volumeattachments
kubectl get csidriver driver.example.com -o yaml
kubectl describe csidriver driver.example.com
kubectl describe csinode n1
kubectl get volumeattributesclasses
kubectl describe volumeattributesclass gold
kubectl get csistoragecapacities
# Binding, as by the controller
kubectl patch pvc disk -p '{"spec":{"volumeName":"vol"}}'
kubectl patch pvc disk --subresource=status --type=merge -p '{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"5Gi"}}}'
kubectl patch pv vol --subresource=status --type=merge -p '{"status":{"phase":"Bound"}}'
kubectl get pv,pvc
kubectl describe pvc disk
kubectl wait pvc/disk --for=jsonpath='{.status.phase}'=Bound --timeout=10s
kubectl get pvc disk -o jsonpath='{.status}'
# Invalid
kubectl patch pvc disk -p '{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}'
kubectl patch pvc disk -p '{"spec":{"accessModes":["ReadWriteMany"]}}'
kubectl patch pv vol -p '{"spec":{"hostPath":{"path":"/other"}}}'
kubectl patch storageclass fast -p '{"provisioner":"other.example.com"}'
kubectl create -f wrong.yaml
# Deletion
kubectl delete pvc disk --wait=false
kubectl delete pv vol --wait=false
kubectl delete storageclass,csidriver,csinode --all
kubectl get pv,pvc,storageclasses
