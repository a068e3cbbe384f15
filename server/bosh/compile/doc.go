// Package compile compiles the packages of BOSH releases: each once for a stack and
// the packages that it depends on, in a container, and keeps the outcome as blobs.
// After a kill, the next daemon continues with the packages that are missing.
package compile
