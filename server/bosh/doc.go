// Package bosh makes of a BOSH manifest, its variables filled in, the one
// description of a deployment that both engines take: the one that runs it on
// this machine and the one that writes Kubernetes objects. It is pure but for
// the functions that it is given.
package bosh
