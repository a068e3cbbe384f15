// Package registry serves the images of droplets to the nodes of Kubernetes clusters: the reading half of OCI's distribution
// specification (v1.1), by digest alone, for clients that have the password of a cell.
package registry
