package lrp

// Volume is a directory of the cell's that outlives the container.
type Volume struct {
	Name string // the cell knows it by
	Path string // in the container
	// Exclusive makes the container wait until no other one uses the volume.
	Exclusive bool
	ReadOnly  bool
	NoExec    bool // programs in it cannot be run
	// Dir is the directory of the volume that is shown; "" is all of it.
	Dir string
	// Owner is the user of the container, by name, whom Dir is made for where it is
	// missing, and belongs to. "": Dir must exist.
	Owner string
	// Optional leaves the volume out where there is no such Dir.
	Optional bool
	// Pattern makes Dir a pattern of path.Match, which ends Path, too: each directory that
	// matches when the container starts is shown.
	Pattern bool
}
