// Package server is the daemon. It opens the parts in the order in which they need
// each other, connects them, runs them and closes them: those that run containers
// (package executor), the control loops (loops) and the servers for clients (faces).
package server
