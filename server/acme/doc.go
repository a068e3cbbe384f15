// Package acme gets certificates for mapped names from an ACME server, as Let's Encrypt
// is one, and renews them. The challenges are answered by the router's listeners, or by a
// command that changes DNS records. What must outlive the daemon is in the store.
package acme
