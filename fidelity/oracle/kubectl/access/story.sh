# Access: accounts, roles, auth can-i, tokens, certificates
kubectl create serviceaccount robot
kubectl create serviceaccount robot
kubectl get serviceaccounts
kubectl get serviceaccount robot -o yaml
kubectl describe serviceaccount robot
kubectl create role reader --verb=get,list --resource=pods,deployments.apps
kubectl create role named --verb=get --resource=configmaps --resource-name=a --resource-name=b
kubectl create role wrong --verb=get --resource=nosuch
kubectl create rolebinding readers --role=reader --serviceaccount=default:robot --user=jane --group=team
kubectl create clusterrole nodes --verb=get --resource=nodes
kubectl create clusterrole paths --verb=get --non-resource-url=/metrics
kubectl create clusterrole sum --aggregation-rule=app=web
kubectl create clusterrolebinding nodes --clusterrole=nodes --user=bob
kubectl apply -f roles.yaml
kubectl get roles,rolebindings
kubectl get roles,rolebindings -o wide
kubectl get clusterrole nodes paths sum
kubectl get clusterrolebinding nodes -o wide
kubectl get role reader -o yaml
kubectl get rolebinding readers -o yaml
kubectl describe role reader
kubectl describe role named
kubectl describe rolebinding readers
kubectl describe clusterrole nodes
kubectl describe clusterrole paths
kubectl describe clusterrolebinding nodes
kubectl set subject rolebinding readers --user=joe
kubectl patch rolebinding readers -p '{"roleRef":{"name":"other"}}'
kubectl create -f wrong.yaml
# auth whoami
kubectl auth whoami
kubectl auth whoami -o yaml
kubectl auth can-i create pods
kubectl auth can-i create pods --as=bob
kubectl auth can-i get nodes --as=bob
kubectl auth can-i list pods --as=system:serviceaccount:default:robot
kubectl auth can-i list pods -n kube-system --as=system:serviceaccount:default:robot
kubectl auth can-i get pods --subresource=log
kubectl auth can-i get /metrics --as=bob
kubectl auth can-i nosuch nosuch
kubectl auth can-i --list
kubectl auth can-i --list --as=bob
# Without permissions
kubectl --token oracle-limited-token auth whoami
kubectl --token oracle-limited-token auth can-i create pods
kubectl --token oracle-limited-token auth can-i --list
kubectl --token oracle-limited-token get pods
kubectl --token oracle-limited-token get pod web -o yaml
kubectl --token oracle-limited-token get nodes
kubectl --token oracle-limited-token get deployments -A
kubectl --token oracle-limited-token create configmap a
kubectl --token oracle-limited-token delete configmap a
kubectl --token oracle-limited-token patch configmap a -p '{}'
kubectl --token oracle-limited-token create namespace a
kubectl --token oracle-limited-token api-resources --api-group=apps
kubectl --token oracle-limited-token version
kubectl --token oracle-limited-token get --raw /metrics
kubectl --token nonsense get pods
kubectl get pods --as=bob
kubectl get pods --as=bob --as-group=system:masters
kubectl get nodes --as=bob
# Tokens
kubectl create token robot --duration=10m
kubectl create token robot --audience=elsewhere
kubectl create token robot --duration=1s
kubectl create token nosuch
kubectl --token $(kubectl create token robot) auth whoami
kubectl --token $(kubectl create token robot) get pods
kubectl --token $(kubectl create token robot) get configmaps
# Certificates
kubectl create -f request.yaml
kubectl get csr
kubectl describe csr jane
kubectl certificate approve jane
kubectl get csr
kubectl certificate approve jane
kubectl certificate deny jane
kubectl certificate deny nosuch
kubectl describe csr jane
kubectl delete csr jane
kubectl get csr
# Deletion
kubectl delete role,rolebinding --all
kubectl delete clusterrole,clusterrolebinding nodes
kubectl get roles,rolebindings
