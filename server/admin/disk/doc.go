// Package disk measures what takes room in a data directory, and deletes caches: what
// nothing uses, and can be made or fetched again. Those that were not used for longest
// go first. It deletes nothing that a row names except build caches, which stagings do
// without.
package disk
