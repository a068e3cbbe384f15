package lrp

// Volume is a directory of the cell's that outlives the container.
type Volume struct {
	Name string // the cell knows it by
	Path string // in the container
	// Exclusive has the container wait until no other one has the volume.
	Exclusive bool
	ReadOnly  bool
}
