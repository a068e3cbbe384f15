// Package machine shows operators the machine: its alerts, its state, and what takes
// room on it.
package machine
