# Services, ingresses, network policies, endpoints
kubectl create service clusterip inside --tcp=80:8080
kubectl create service nodeport door --tcp=80:8080
kubectl create service loadbalancer balanced --tcp=443:8443
kubectl create service externalname elsewhere --external-name=elsewhere.example.com
kubectl create service clusterip headless --clusterip=None --tcp=80
kubectl create service clusterip inside --tcp=80:8080
kubectl create service clusterip wrong --tcp=99999
kubectl apply -f services.yaml
kubectl get services
kubectl get services -o wide
kubectl get service many -o yaml
kubectl get service door -o yaml
kubectl get service elsewhere -o yaml
kubectl get service headless -o json
kubectl get service balanced -o jsonpath='{.spec.allocateLoadBalancerNodePorts} {.spec.externalTrafficPolicy} {.spec.internalTrafficPolicy} {.spec.ipFamilyPolicy} {.spec.sessionAffinity}'
kubectl describe service many
kubectl describe service door
kubectl describe service elsewhere
kubectl patch service balanced --subresource=status --type=merge -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"lb.example.com"}]}}}'
kubectl get service balanced
kubectl describe service balanced
kubectl set selector service/many app=other
kubectl get service many -o jsonpath='{.spec.selector}'
kubectl patch service many -p '{"spec":{"ports":[{"port":0}]}}'
kubectl patch service many --dry-run=server -p '{"spec":{"clusterIP":"10.0.0.99"}}'
kubectl patch service many -p '{"spec":{"type":"Nope"}}'
kubectl patch service inside -p '{"spec":{"type":"NodePort"}}'
kubectl get service inside -o wide
kubectl patch service inside --type=merge -p '{"spec":{"type":"ClusterIP","ports":[{"name":"80-8080","port":80,"targetPort":8080}]}}'
kubectl patch service door --dry-run=server --type=json -p '[{"op":"replace","path":"/spec/ports/0/nodePort","value":80}]'
kubectl delete service kubernetes --dry-run=server
# expose
kubectl create deployment web --image=nginx --port=80
kubectl expose deployment web
kubectl expose deployment web --port=81 --target-port=8080 --name=web81 --type=NodePort
kubectl expose deployment web
kubectl expose deployment nosuch --port=80
kubectl expose service web --port=82 --name=again --labels=a=b
kubectl get services -l app=web -o wide
kubectl get services --field-selector=metadata.name=web
# Endpoints
kubectl apply -f endpoints.yaml
kubectl get endpoints
kubectl describe endpoints many
kubectl get endpointslices
kubectl describe endpointslice many-1
kubectl describe service many
# Ingresses
kubectl apply -f ingress.yaml
kubectl create ingress simple --rule=shop.example.com/cart=many:http
kubectl create ingress tls --class=nginx --rule='shop.example.com/*=many:http,tls=secret' --annotation=a=b
kubectl create ingress wrong --rule=nothing
kubectl get ingresses
kubectl get ingresses -o wide
kubectl get ingress simple -o yaml
kubectl describe ingress shop
kubectl describe ingress tls
kubectl patch ingress shop --subresource=status --type=merge -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}'
kubectl get ingress shop
kubectl get ingressclasses
kubectl describe ingressclass nginx
kubectl patch ingress shop --type=json -p '[{"op":"replace","path":"/spec/rules/0/host","value":"NOT A HOST"}]'
# Policies and addresses
kubectl apply -f policies.yaml
kubectl get networkpolicies
kubectl describe networkpolicy deny
kubectl describe networkpolicy some
kubectl get networkpolicy some -o yaml
kubectl get ipaddresses -o name
kubectl get servicecidrs
kubectl describe servicecidr kubernetes
# Deletion
kubectl delete service inside door
kubectl delete services --all
kubectl delete ingress,networkpolicy --all
kubectl get services,ingresses,networkpolicies
