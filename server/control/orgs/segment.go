package orgs

import (
	"slices"
	"strings"
	"unicode"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// SegmentChange is a change of an isolation segment.
type SegmentChange struct {
	Name     change.Field[string] `json:"name"`
	Metadata *change.Metadata     `json:"metadata"`
}

// CreateSegment adds an isolation segment.
func CreateSegment(c *control.Session, req SegmentChange) (*cf.IsolationSegment, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	s := &cf.IsolationSegment{}
	return s, saveSegment(c, s, req, store.IsolationSegments.Insert)
}

// UpdateSegment changes an isolation segment.
func UpdateSegment(c *control.Session, s *cf.IsolationSegment, req SegmentChange) error {
	return saveSegment(c, s, req, store.IsolationSegments.Update)
}

func saveSegment(c *control.Session, s *cf.IsolationSegment, req SegmentChange, write func(*store.Tx, *cf.IsolationSegment) error) error {
	s.Name = req.Name.Or(s.Name)
	blank := strings.TrimSpace(s.Name) == "" || strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) })
	if err := control.Invalid(control.Must(!blank, "Isolation Segment names can only contain non-blank unicode characters",
		len(s.Name) <= 255, "Name is too long (maximum is 255 characters)")); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return err
	}
	err := write(c.Tx, s)
	if store.IsTaken(err) {
		return cf.Unprocessable("Isolation Segment names are case insensitive and must be unique")
	}
	return err
}

// OwnSegment refuses to change the segment that is there from the start.
func OwnSegment(s *cf.IsolationSegment, what string) error {
	if s.GUID == cf.SharedSegment {
		return cf.Unprocessable("Cannot %s the %s Isolation Segment", what, s.Name)
	}
	return nil
}

// DeleteSegment deletes an isolation segment that no org and no space has.
func DeleteSegment(c *control.Session, s *cf.IsolationSegment) error {
	if err := OwnSegment(s, "delete"); err != nil {
		return err
	}
	n, err := store.Spaces.Count(c.Tx, store.Query{Where: map[string][]string{"isolation_segment_guids": {s.GUID}}})
	switch {
	case err != nil:
		return err
	case n > 0 || len(s.Orgs) > 0:
		return cf.Unprocessable("Revoke the Organization entitlements for your Isolation Segment.")
	}
	return store.IsolationSegments.Delete(c.Tx, s.GUID)
}

// Entitle lets orgs use a segment.
func Entitle(c *control.Session, s *cf.IsolationSegment, guids []string) error {
	found, err := store.Orgs.By(c.Tx, "guids", guids...)
	if err != nil {
		return err
	}
	known := control.GUIDs(found, func(o *cf.Org) string { return o.GUID })
	if unknown := control.Missing(guids, known); len(unknown) > 0 {
		return cf.Unprocessable("Unable to entitle organizations ['%s'] for the isolation segment. Ensure the organizations exist.", strings.Join(unknown, "', '"))
	}
	s.Orgs = control.Union(s.Orgs, known)
	return store.IsolationSegments.Update(c.Tx, s)
}

// Revoke takes a segment from an org that does not use it.
func Revoke(c *control.Session, s *cf.IsolationSegment, guid string) error {
	org, err := store.Orgs.Get(c.Tx, guid)
	if store.IsNotFound(err) {
		return cf.Errorf(cf.ResourceNotFound, "Org not found")
	}
	if err != nil {
		return err
	}
	if org.SegmentGUID == s.GUID {
		return cf.Unprocessable("Cannot remove the entitlement while this Isolation Segment is assigned as the Default Isolation Segment for the Organization.")
	}
	spaces, err := store.Spaces.Where(c.Tx, map[string][]string{"isolation_segment_guids": {s.GUID}, "organization_guids": {org.GUID}})
	if err != nil {
		return err
	}
	if len(spaces) > 0 {
		names := control.GUIDs(spaces, func(s *cf.Space) string { return "'" + s.Name + "'" })
		return cf.Unprocessable("Cannot remove the entitlement while this Isolation Segment is assigned to any Spaces. Currently assigned to: %s", strings.Join(names, ", "))
	}
	return leaveSegment(c, s, org.GUID)
}

// leaveSegment takes an isolation segment from an org.
func leaveSegment(c *control.Session, s *cf.IsolationSegment, org string) error {
	s.Orgs = control.Drop(s.Orgs, org)
	return store.IsolationSegments.Update(c.Tx, s)
}

// LeaveSegments takes an org that is deleted out of the segments.
func LeaveSegments(c *control.Session, org string) error {
	all, err := store.IsolationSegments.By(c.Tx, "organization_guids", org)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := leaveSegment(c, s, org); err != nil {
			return err
		}
	}
	return nil
}

// SetOrgSegment gives an org its default segment; nothing is the shared one.
func SetOrgSegment(c *control.Session, o *cf.Org, to change.ToOne) error {
	if err := entitled(c, o.GUID, to, "Ensure it has been entitled to the organization."); err != nil {
		return err
	}
	o.SegmentGUID = to.GUID()
	return store.Orgs.Update(c.Tx, o)
}

// SetSpaceSegment assigns an isolation segment to a space; without one the space has
// that of its org.
func SetSpaceSegment(c *control.Session, s *cf.Space, to change.ToOne) error {
	if err := entitled(c, s.OrgGUID, to, "Ensure it has been entitled to the organization that this space belongs to."); err != nil {
		return err
	}
	s.SegmentGUID = to.GUID()
	if err := store.Spaces.Update(c.Tx, s); err != nil {
		return err
	}
	return SpaceEvent(c, audit.SpaceUpdate, s, c.Asked)
}

// entitled refuses a segment that an org may not use.
func entitled(c *control.Session, org string, to change.ToOne, remedy string) error {
	if to.Data == nil {
		return nil
	}
	s, err := store.IsolationSegments.Get(c.Tx, to.GUID())
	if store.IsNotFound(err) || err == nil && !slices.Contains(s.Orgs, org) {
		return cf.Unprocessable("Unable to assign isolation segment with guid '%s'. %s", to.GUID(), remedy)
	}
	return err
}
