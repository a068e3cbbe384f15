// Package stacks has the verbs of stacks and buildpacks.
package stacks
