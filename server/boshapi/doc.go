// Package boshapi serves the HTTP API of BOSH's director, as far as the bosh CLI uses it.
// Handlers call what /v1/deployments calls too: packages director and releases.
//
// What the director does in a task, and cupola at once, is done before the answer, and
// recorded as a task that has ended.
package boshapi
