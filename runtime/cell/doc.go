// Package cell is the executor: it brings containers up step by step, watches
// them, and takes them down again in reverse. It reports what happened by
// events.
//
// A container outlives the daemon. The cell records each step on disk before
// it takes effect, so that the next Run adopts what still runs and removes
// what does not, whenever the daemon was killed.
package cell
