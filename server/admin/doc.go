// Package admin is what operators do with a data directory, whether its daemon
// runs or not: one table of operations, each with its name, its help, the types of
// its request and its answer, and what it needs open. The daemon serves the table
// at its control socket; a command asks for an operation there, and where no daemon
// runs it opens what the operation needs and runs it itself.
package admin
