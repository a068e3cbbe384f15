// Package redact finds credentials that a manifest has in clear, by the names of
// properties, flags and environment variables. It is pure.
package redact
