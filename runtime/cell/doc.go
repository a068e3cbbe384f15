// Package cell is the executor: it brings containers up step by step, watches
// them, and takes them down again in reverse. It tells what happened by events.
//
// A container outlives the daemon. The cell writes down what it started before
// it starts it, so that the next Run adopts what still runs and clears away
// what does not, whenever the daemon was killed.
package cell
