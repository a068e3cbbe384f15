// Package tarball takes the tarballs of BOSH releases into the blob store: each
// job and package becomes a blob. A tarball is untrusted: all of it is checked
// and bounded before anything is kept.
package tarball
