// Package access has the account of cupola in a Kubernetes cluster, with the rights that a cell needs and no others, as
// objects: `kubectl apply -k server/kube/access` makes them.
package access
