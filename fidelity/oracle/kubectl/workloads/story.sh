# Deployments, stateful and daemon sets, jobs and cron jobs from creation to deletion
kubectl apply -f ../account.yaml
kubectl apply -f workloads.yaml
kubectl get all
kubectl get all -o wide
kubectl get deployments,statefulsets,daemonsets,jobs,cronjobs -o name
kubectl get deployment web -o yaml
kubectl get statefulset db -o yaml
kubectl get daemonset agent -o yaml
kubectl get job once -o yaml
kubectl get cronjob nightly -o yaml
kubectl describe deployment web
kubectl describe statefulset db
kubectl describe daemonset agent
kubectl describe job once
kubectl describe cronjob nightly
# Without manifests
kubectl create deployment hand --image=nginx --replicas=2 --port=80
kubectl create deployment two --image=nginx --image=busybox
kubectl create deployment hand --image=nginx --dry-run=client -o yaml
kubectl create deployment hand --image=nginx --dry-run=server -o yaml
kubectl create job now --image=busybox -- date
kubectl create job copy --from=cronjob/nightly
kubectl create cronjob often --image=busybox --schedule='*/5 * * * *' -- date
kubectl create cronjob wrong --image=busybox --schedule='never'
kubectl describe job copy
# Updates
kubectl set image deployment/web c=nginx:1.26
kubectl set image deployment/web nope=nginx:1.26
kubectl set image deployment,daemonset --all '*=nginx:1.28'
kubectl set env deployment/web K=V
kubectl set env deployment/web --list
kubectl set env deployment/web K-
kubectl set resources deployment/web --limits=cpu=200m,memory=512Mi --requests=cpu=100m
kubectl create serviceaccount bot
kubectl set serviceaccount deployment/web bot
kubectl get deployment web -o jsonpath='{.spec.template.spec}'
kubectl set selector service/nosuch app=x
kubectl scale deployment web --replicas=3
kubectl scale deployment web --replicas=4 --current-replicas=99
kubectl scale statefulset db --replicas=2 --current-replicas=1
kubectl scale deployment/web deployment/hand --replicas=1
kubectl scale daemonset agent --replicas=2
kubectl scale deployment nosuch --replicas=1
kubectl scale deployment web --replicas=-1
kubectl get deployment web --subresource=scale
kubectl get deployment web --subresource=scale -o yaml
kubectl get statefulset db --subresource=status -o name
# Rollouts
kubectl rollout history deployment/web
kubectl rollout status deployment/web --watch=false
kubectl rollout status daemonset/agent --watch=false
kubectl rollout status statefulset/db --watch=false
kubectl rollout pause deployment/web
kubectl rollout pause deployment/web
kubectl rollout restart deployment/web
kubectl rollout resume deployment/web
kubectl rollout resume deployment/web
kubectl rollout restart deployment/web daemonset/agent statefulset/db
kubectl rollout restart job/once
kubectl rollout undo deployment/web
kubectl create -f old.yaml
sed s/UID/$(kubectl get deployment old -o jsonpath='{.metadata.uid}')/ revisions.yaml | kubectl create -f -
kubectl rollout history deployment/old
kubectl rollout history deployment/old --revision=1
kubectl rollout undo deployment/old --to-revision=1 --dry-run=server
kubectl rollout undo deployment/old --to-revision=1
kubectl rollout undo deployment/old --to-revision=9
kubectl get replicasets
kubectl get replicasets -o wide
kubectl describe replicaset old-1
kubectl get controllerrevisions
# Status, as written by a controller
kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":99,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"}]}}'
kubectl get deployment web
kubectl wait deployment/web --for=condition=Available --timeout=10s
kubectl rollout status deployment/web --timeout=10s
kubectl patch job once --subresource=status --type=merge -p '{"status":{"startTime":"2026-01-01T00:00:00Z","active":1,"ready":0}}'
kubectl get job once
kubectl patch job once --subresource=status --type=merge -p '{"status":{"succeeded":1,"active":0,"completionTime":"2026-01-01T00:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-01T00:01:00Z","lastProbeTime":"2026-01-01T00:01:00Z"},{"type":"Complete","status":"True","lastTransitionTime":"2026-01-01T00:01:00Z","lastProbeTime":"2026-01-01T00:01:00Z"}]}}'
kubectl get jobs once
kubectl describe job once
kubectl patch daemonset agent --subresource=status --type=merge -p '{"status":{"currentNumberScheduled":1,"desiredNumberScheduled":1,"numberReady":1,"numberMisscheduled":0,"updatedNumberScheduled":1,"numberAvailable":1}}'
kubectl get daemonset agent
kubectl patch cronjob nightly -p '{"spec":{"suspend":true}}'
kubectl get cronjob nightly
# Replication controllers
kubectl create -f controller.yaml
kubectl get replicationcontrollers -o wide
kubectl describe replicationcontroller rc
kubectl get podtemplates -o wide
kubectl scale replicationcontroller rc --replicas=0
# Invalid
kubectl patch deployment web -p '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'
kubectl patch deployment web -p '{"spec":{"replicas":-1}}'
kubectl patch statefulset db -p '{"spec":{"serviceName":"other"}}'
kubectl patch job once -p '{"spec":{"completions":5}}'
kubectl patch cronjob nightly -p '{"spec":{"schedule":"x"}}'
kubectl patch daemonset agent -p '{"spec":{"template":{"metadata":{"labels":{"app":"no"}}}}}'
# Deletion
kubectl delete deployment two --cascade=foreground --wait=false
kubectl get deployment two -o jsonpath='{.metadata.finalizers}'
kubectl delete deployment hand --cascade=orphan --wait=false
kubectl get deployment hand -o jsonpath='{.metadata.finalizers}'
kubectl delete statefulset db
kubectl delete job --all --cascade=background
kubectl delete cronjobs nightly often
kubectl get all
