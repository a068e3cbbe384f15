// Package bbs serves Diego's BBS API: protobuf over HTTP POST with mutual TLS,
// for cfdot and other clients of Diego. What they desire is stored, and run by
// the same loop as Cloud Foundry's apps, whose LRPs they see too.
package bbs
