// Package resolve brings what a BOSH manifest names to this machine: it pulls the
// images of releases and renders their jobs. It also returns the outcome as
// Kubernetes objects.
package resolve
