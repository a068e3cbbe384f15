// Package server is the daemon. It is the only package that knows every
// part: it opens them, joins them and closes them.
package server
