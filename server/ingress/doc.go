// Package ingress derives from the rows where requests go: the router's table of
// routes, and the names by which containers find each other. Its noun for a route
// is the router's own: routes of apps and those that clients of the BBS desire
// become router.Route, and nothing between.
package ingress
