// Package podcell is a cell that is a namespace of a Kubernetes cluster: each of its
// containers is a pod. What runs is known from the pods alone: the next daemon adopts them.
package podcell
