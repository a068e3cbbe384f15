// Package bbspb holds the messages of Diego's BBS API, generated from
// bbs.proto.
package bbspb

//go:generate go run -C generate .
