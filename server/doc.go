// Package server is the daemon. It is the only place that knows every part of
// the house: it opens them, joins them and ends them.
package server
