package cf

import "slices"

// SharedSegment is the GUID and the name of the isolation segment that what has
// no other runs in. The GUID is Cloud Controller's.
const (
	SharedSegment     = "933b4c58-120b-499a-b85d-4b6fc9e2903b"
	sharedSegmentName = "shared"
)

// IsolationSegment keeps what runs in it on cells that have its name as a tag,
// and keeps everything else off them.
type IsolationSegment struct {
	Resource
	Metadata
	Name string
	Orgs []string // GUIDs of the organizations that are entitled to it
}

// PlacementPool says on which cells its apps and those of its spaces run, by the
// cells' tags.
type PlacementPool struct {
	Resource
	Metadata
	Name     string
	Require  []string
	Disallow []string
	Default  bool // it is that of the spaces that have none; at most one is
}

// Placement is what of pool and segment something was started with. The zero
// value allows every cell.
type Placement struct {
	Pool     string   `json:"pool,omitempty"` // name, for people
	Require  []string `json:"require,omitempty"`
	Disallow []string `json:"disallow,omitempty"`
	Segment  string   `json:"segment,omitempty"` // name of the isolation segment; "" for the shared one
	Others   []string `json:"others,omitempty"`  // names of the other segments
}

// Same reports whether a start with q would ask for the same cells as p. Segments
// that came since do not count.
func (p Placement) Same(q Placement) bool {
	return p.Segment == q.Segment && slices.Equal(p.Require, q.Require) && slices.Equal(p.Disallow, q.Disallow)
}
