// Package cf holds the nouns of the control plane: what a user asked for, in
// Cloud Foundry's words, and the kinds of error that a client can act on. It
// imports only the standard library.
package cf
