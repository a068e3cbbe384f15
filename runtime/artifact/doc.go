// Package artifact moves archives between this machine and HTTP servers for
// containers: it fetches with a checksum, keeps what has a cache key and asks
// only whether it has changed, and uploads. Limits are Diego's.
package artifact
