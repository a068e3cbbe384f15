// Package drain sends the logs of apps to where their users want them: syslog
// over TCP or TLS, in the words that Cloud Foundry's syslog agent uses (RFC
// 5424 in the octet-counted frames of RFC 6587).
//
// Nothing waits for a drain: each has a bounded queue, and what it cannot hold is
// lost, counted, and reported in the app's log.
package drain
