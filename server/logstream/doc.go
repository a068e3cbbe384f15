// Package logstream sends what apps say and use to clients as it comes: the RLP
// gateway's GET /v2/read as server-sent events, and doppler's websockets with the
// envelopes of Loggregator's first protocol. Nothing waits for a client: what its
// bounded queue cannot hold is lost, and a client that takes nothing is cut off.
package logstream
