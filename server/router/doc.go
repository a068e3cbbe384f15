// Package router is the ingress: it takes HTTP requests by Host and path to
// the instances of apps. Its headers, errors, stickiness and access log are
// those of Cloud Foundry's gorouter. Set replaces all routes at once; requests
// in flight keep the endpoint they have.
//
// forward.go is the seam to the backends: everything that moves bytes there
// is behind forwarder.
package router
