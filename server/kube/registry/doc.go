// Package registry serves the images of droplets to the nodes of Kubernetes clusters: the reading half of OCI's distribution
// specification (v1.1), by digest alone, for clients that have the password of a cell. At the same address it gives the pods
// that stage apps what they need, and takes what they make, each by the token of its own staging.
package registry
