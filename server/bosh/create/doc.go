// Package create makes the tarball of a BOSH release from its directory, as 'bosh
// create-release --force' does, with the same fingerprints.
package create
