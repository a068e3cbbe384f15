// Package cells carves the machine into logical cells as the configuration says,
// and decides which root filesystems each offers.
package cells
