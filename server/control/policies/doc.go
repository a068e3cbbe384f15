// Package policies says who may have which network policies between apps.
package policies
