package orgs

import (
	"slices"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// LeaveSegment takes an isolation segment from an org.
func LeaveSegment(c *control.Session, s *cf.IsolationSegment, org string) error {
	s.Orgs = control.Without(s.Orgs, func(g string) bool { return g == org })
	return store.IsolationSegments.Update(c.Tx, s)
}

// LeaveSegments takes an org that is deleted out of the segments.
func LeaveSegments(c *control.Session, org string) error {
	all, err := store.IsolationSegments.By(c.Tx, "organization_guids", org)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := LeaveSegment(c, s, org); err != nil {
			return err
		}
	}
	return nil
}

// Entitled tells whether an org may use a segment.
func Entitled(c *control.Session, org, segment string) (bool, error) {
	s, err := store.IsolationSegments.Get(c.Tx, segment)
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && slices.Contains(s.Orgs, org), err
}
