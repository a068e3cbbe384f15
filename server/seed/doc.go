// Package seed makes the rows that are there without anybody having asked: what the
// daemon and its machine offer, the admin, and a first org and space.
package seed
