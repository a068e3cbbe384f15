// Package cells lists cells and moves apps between them, manages placement pools, and simulates the scheduler.
package cells
