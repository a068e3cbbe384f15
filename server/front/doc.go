// Package front is what clients of the daemon's HTTP listeners meet before the
// API and the router: budgets, the choice between the system's
// hosts and apps', who may read which logs, and the end of it all without a
// request lost. It opens the ports of TCP routes, too.
package front
