// Package stacks has the verbs of stacks and buildpacks, and offers those that come
// with the daemon and its machine.
package stacks
