// Package reconcile is the control loop: it makes what runs like what is
// desired. Plan decides and is pure; Loop reads the rows and the cells, has
// Plan decide, writes what it decided and then tells the cells. Cells answer by
// events, which Loop writes down; a settled staging or task reaches its build or
// app in the same transaction.
package reconcile
