// Package bosh tests BOSH deployments, here and in Kubernetes.
package bosh
