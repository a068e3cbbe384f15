// Package apply brings objects into a Kubernetes cluster and waits until they do
// what they are for. It applies them server-side, as the field manager cupola:
// what is as it should be stays untouched.
package apply
