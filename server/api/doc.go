// Package api is Cloud Foundry's v3 API. routes.go is the table of every route with its
// access rule. verb.go makes handlers of the verbs of package control; a file per
// resource holds its view, and the handlers that do more. A handler runs inside one
// transaction, returns a response or an error, and never writes bytes itself: what a
// 202 promises has already happened, its job is a record.
//
// Paths, names, states, error codes and texts are Cloud Controller's, because
// clients match on them.
package api
