// Package router is the ingress: it takes HTTP requests by Host and path to
// the instances of apps. Its headers, errors, stickiness and access log are
// those of Cloud Foundry's gorouter. Set replaces all routes at once; requests
// in flight keep the endpoint they have.
//
// There are two ways to the instances. Ahead (direct.go) forwards plain requests
// itself (call.go), those of HTTP/1.1 (directconn.go) and of HTTP/2 (multi.go), and what follows once
// an instance has switched protocols, as for a websocket
// (tunnel.go); all others come to ServeHTTP by way of net/http, or of package h2, and go on through forwarder
// (forward.go). exchange.go, admit.go and what they call are the rules of both.
package router
