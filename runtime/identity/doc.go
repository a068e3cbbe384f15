// Package identity gives containers certificates that say which instance, app,
// space and org they are: Diego's instance identity. The authority's key never
// leaves the machine.
package identity
