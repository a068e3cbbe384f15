// Package kube writes BOSH deployments as Kubernetes objects, for those who
// outgrow one machine: with the same names, files and limits as they have here.
// It is pure; objects are plain maps, so that it needs none of Kubernetes' types.
package kube
