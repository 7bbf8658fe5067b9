# Quotas, limit ranges, priorities, budgets, autoscalers, runtime classes
kubectl apply -f ../account.yaml
kubectl create quota small --hard=pods=2,configmaps=3
kubectl create quota scoped --hard=pods=1 --scopes=BestEffort
kubectl create quota wrong --hard=pods=-1 --dry-run=server
kubectl get quota
kubectl describe quota small
kubectl get quota small -o yaml
kubectl patch quota small --subresource=status --type=merge -p '{"status":{"hard":{"pods":"2"},"used":{"pods":"1"}}}'
kubectl get resourcequotas
kubectl describe quota small
kubectl delete quota --all
kubectl apply -f ranges.yaml
kubectl get limitranges
kubectl describe limitrange ranges | sort
kubectl get limitrange ranges -o yaml
kubectl describe namespace default | sort
kubectl run ranged --image=nginx
kubectl get pod ranged -o yaml
kubectl create -f greedy.yaml
kubectl delete limitrange ranges
# Priorities
kubectl create priorityclass high --value=1000 --description='for what matters'
kubectl create priorityclass never --value=5 --preemption-policy=Never --global-default
kubectl create priorityclass system-mine --value=5
kubectl create priorityclass huge --value=2000000000
kubectl get priorityclass high never
kubectl describe priorityclass high
kubectl patch priorityclass high --dry-run=server -p '{"value":5}'
kubectl run ordinary --image=nginx
kubectl get pod ordinary -o jsonpath='{.spec.priority} {.spec.priorityClassName} {.spec.preemptionPolicy}'
kubectl run urgent --image=nginx --overrides='{"spec":{"priorityClassName":"high"}}'
kubectl get pod urgent -o jsonpath='{.spec.priority} {.spec.priorityClassName}'
kubectl run lost --image=nginx --overrides='{"spec":{"priorityClassName":"nosuch"}}'
kubectl delete priorityclass high never
# Budgets
kubectl create pdb least --selector=app=web --min-available=1
kubectl create pdb most --selector=app=web --max-unavailable=50%
kubectl create pdb both --selector=app=web --max-unavailable=1 --min-available=1
kubectl get pdb
kubectl describe pdb least
kubectl get pdb most -o yaml
kubectl patch pdb least --subresource=status --type=merge -p '{"status":{"currentHealthy":3,"desiredHealthy":1,"disruptionsAllowed":2,"expectedPods":3}}'
kubectl get pdb least
kubectl create -f pdb.yaml
# Autoscalers
kubectl create deployment web --image=nginx
kubectl autoscale deployment web --min=1 --max=3 --cpu=80%
kubectl autoscale deployment web --max=0 --name=none
kubectl autoscale deployment web --max=3 --cpu=500m --memory=1Gi --name=more
kubectl autoscale deployment nosuch --max=3
kubectl apply -f autoscaler.yaml
kubectl get hpa
kubectl get hpa -o wide
kubectl get hpa many -o yaml
kubectl get horizontalpodautoscalers.v1.autoscaling many -o yaml
kubectl describe hpa web
kubectl describe hpa many
kubectl patch hpa web --subresource=status --type=merge -p '{"status":{"currentReplicas":2,"desiredReplicas":3,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50,"averageValue":"100m"}}}],"conditions":[{"type":"AbleToScale","status":"True","reason":"R","message":"m"}]}}'
kubectl get hpa web
kubectl describe hpa web
# Runtime classes, devices and the rest
kubectl apply -f rest.yaml
kubectl get runtimeclasses
kubectl describe runtimeclass gvisor
kubectl run strange --image=nginx --overrides='{"spec":{"runtimeClassName":"nosuch"}}'
kubectl run sandboxed --image=nginx --overrides='{"spec":{"runtimeClassName":"gvisor"}}'
kubectl get pod sandboxed -o jsonpath='{.spec.overhead} {.spec.nodeSelector}'
kubectl get deviceclasses,resourceclaims,resourceclaimtemplates,resourceslices
kubectl get deviceclass gpus -o yaml
kubectl describe deviceclass gpus
kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations
kubectl describe validatingwebhookconfiguration hook
kubectl get validatingwebhookconfiguration hook -o yaml
kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings
kubectl delete runtimeclass,deviceclass,validatingwebhookconfiguration --all
