// Package images takes the images that containers run on into the cache, keeps
// what stagings made, and makes images of droplets.
package images

import (
	"cupola/rootfs"
	"cupola/store/blob"
)

// Images are those of a daemon.
type Images struct {
	Roots *rootfs.Store
	Blobs *blob.Store
}
