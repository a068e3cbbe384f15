// Package policies has the verbs of network policies between apps, and says who may
// have which.
package policies
