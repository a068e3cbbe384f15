// Package reconcile is the control loop: it brings the actual state to the
// desired state. Plan decides and is pure; Loop reads the rows and the cells, calls
// Plan, writes its actions to the rows and then calls the cells. Cells answer with
// events, which Loop records; the result of a staging or task reaches its build or
// app in the same transaction.
package reconcile
