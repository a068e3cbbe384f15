// Package datadir is a data directory: the names in it and those that it gives
// to objects of the kernel, its lock, and how the parts that keep their state in
// it are opened. The daemon opens all of them, a command those that it needs.
package datadir
