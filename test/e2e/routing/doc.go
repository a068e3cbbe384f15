// Package routing tests the ways to an app and out of it: routes, ports, route services, network policies, floods.
package routing
