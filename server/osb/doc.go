// Package osb is a client of the Open Service Broker API 2.17. It makes one
// request at a time, bounded in time and size, and checks what comes back as
// Cloud Controller does: what a broker answers is either what the API allows,
// or an *Error in Cloud Controller's words. It keeps nothing and retries
// nothing.
package osb
