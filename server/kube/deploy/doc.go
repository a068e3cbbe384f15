// Package deploy has cupola itself as objects of a Kubernetes cluster, whose pods its apps are: `kubectl apply -k
// server/kube/deploy` makes them.
package deploy
