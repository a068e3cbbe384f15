// Package erb renders the templates of BOSH jobs. Templates that only print
// literals, properties, links and parts of the spec are rendered in Go; all
// others by a Ruby that the caller runs, in one go, and in whatever confinement
// such programs need: templates come from release images, which are untrusted.
// Both give the same bytes and the same texts of errors. The package is pure.
package erb
