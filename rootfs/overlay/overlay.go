// Package overlay mounts directories above each other: overlays for containers, which name their layers by descriptors, and
// overlays in which a layer of an image is unpacked above those below it.
package overlay

// Overlay is a mount of Lowers, the topmost first and relative to Base, below Upper.
type Overlay struct {
	Base               string
	Lowers             []string
	Point, Upper, Work string
}
