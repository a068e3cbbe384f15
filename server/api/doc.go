// Package api is Cloud Foundry's v3 API. routes.go is the table of every
// route with its access rule; a file per resource holds its requests, its
// handlers and its view. A handler runs inside one transaction, returns a
// response or an error, and never writes bytes itself: what a 202 promises has
// already happened, its job is a record.
//
// Paths, names, states, error codes and texts are Cloud Controller's, because
// clients match on them.
package api
