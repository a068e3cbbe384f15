// Package stack manages the stacks and the image cache of a data directory: what
// operators do with them, and what of apps, the BBS and deployments needs them.
package stack
