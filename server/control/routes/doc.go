// Package routes has the verbs of routes and their destinations, of domains, and
// of what a route can have: options, policies, a port, shares.
package routes
