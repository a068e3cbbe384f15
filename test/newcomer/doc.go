// Package newcomer tests what a newcomer meets first: 'make build' on a machine without
// Go, or with an old one. The script run tests a release on fresh machines.
package newcomer
