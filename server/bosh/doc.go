// Package bosh puts deployments together from what their authors give: a
// manifest, ops files and variables; and makes of them the one description that
// both engines take, the one that runs a deployment on this machine and the one
// that writes Kubernetes objects. It is pure but for the functions it is given.
package bosh
