// Package certs chooses the certificate that the HTTPS listeners show for the name
// that a client asks for: one that was given for a domain, the one of --tls-cert,
// one of an ACME server, or one that the CA of this machine signs.
package certs
