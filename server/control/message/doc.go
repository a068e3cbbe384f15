// Package message checks the bodies of requests as Cloud Controller's message
// classes do: the same checks in the same order, so that a client gets all that is
// wrong with a request at once, in the same words (ActiveModel's). It looks at JSON
// as it was sent, before that is decoded.
package message
