package api

import (
	"slices"
	"strings"
	"unicode"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewSegment(c *call, s *cf.IsolationSegment) doc {
	self := "/v3/isolation_segments/" + s.GUID
	return with(resource(s.Resource), doc{"name": s.Name, "metadata": metadata(s.Metadata),
		"links": doc{"self": c.link("%s", self), "organizations": c.link("%s/organizations", self)}})
}

// segment is the isolation segment of {guid}, if the actor sees it: one does
// whose org is entitled to it.
func (c *call) segment() (*cf.IsolationSegment, error) {
	return store.IsolationSegments.Visible(c.Tx, c.guid(), c.Scope)
}

// changeSegment is segment for one who may change it.
func (c *call) changeSegment() (*cf.IsolationSegment, error) {
	s, err := c.segment()
	if err != nil {
		return nil, err
	}
	return s, c.PermitAdmin()
}

type segmentRequest struct {
	Name     change.Field[string] `json:"name"`
	Metadata *change.Metadata     `json:"metadata"`
}

func (r segmentRequest) apply(s *cf.IsolationSegment) error {
	s.Name = r.Name.Or(s.Name)
	blank := strings.TrimSpace(s.Name) == "" || strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) })
	if err := control.Invalid(append(control.NameFaults(s.Name), control.Must(!blank, "Isolation Segment names can only contain non-blank unicode characters")...)); err != nil {
		return err
	}
	return r.Metadata.Apply(&s.Metadata)
}

func segmentTaken(err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Isolation Segment names are case insensitive and must be unique")
	}
	return err
}

func createSegment(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req segmentRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s := &cf.IsolationSegment{}
	if err := req.apply(s); err != nil {
		return nil, err
	}
	if err := segmentTaken(store.IsolationSegments.Insert(c.Tx, s)); err != nil {
		return nil, err
	}
	return created(viewSegment(c, s))
}

func updateSegment(c *call) (*response, error) {
	s, err := c.changeSegment()
	if err != nil {
		return nil, err
	}
	if s.GUID == cf.SharedSegment {
		return nil, cf.Unprocessable("Cannot update the %s Isolation Segment", s.Name)
	}
	var req segmentRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := req.apply(s); err != nil {
		return nil, err
	}
	if err := segmentTaken(store.IsolationSegments.Update(c.Tx, s)); err != nil {
		return nil, err
	}
	return ok(viewSegment(c, s))
}

func deleteSegment(c *call) (*response, error) {
	s, err := c.changeSegment()
	if err != nil {
		return nil, err
	}
	if s.GUID == cf.SharedSegment {
		return nil, cf.Unprocessable("Cannot delete the %s Isolation Segment", s.Name)
	}
	spaces, err := store.Spaces.By(c.Tx, "isolation_segment_guids", s.GUID)
	if err != nil {
		return nil, err
	}
	if len(spaces) > 0 {
		return nil, cf.Unprocessable("Please delete the Space associations for your Isolation Segment.")
	}
	if len(s.Orgs) > 0 {
		return nil, cf.Unprocessable("Please delete the Organization associations for your Isolation Segment.")
	}
	if err := store.IsolationSegments.Delete(c.Tx, s.GUID); err != nil {
		return nil, err
	}
	return noContent()
}

// listSegmentOrgs lists the orgs that are entitled to a segment.
func listSegmentOrgs(c *call) (*response, error) {
	s, err := c.segment()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Orgs, viewOrg, func(q *listQuery) error {
		q.Where["guids"] = s.Orgs
		return nil
	})
}

func (c *call) viewEntitled(s *cf.IsolationSegment) doc {
	orgs := s.Orgs
	if c.Scope != nil {
		orgs = control.Without(orgs, func(g string) bool { return !slices.Contains(c.Scope.Orgs, g) })
	}
	self := "/v3/isolation_segments/" + s.GUID
	return with(toMany(orgs), doc{"links": doc{"self": c.link("%s/relationships/organizations", self), "related": c.link("%s/organizations", self)}})
}

func showEntitled(c *call) (*response, error) {
	s, err := c.segment()
	if err != nil {
		return nil, err
	}
	return ok(c.viewEntitled(s))
}

func showSegmentSpaces(c *call) (*response, error) {
	s, err := c.segment()
	if err != nil {
		return nil, err
	}
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"isolation_segment_guids": {s.GUID}}, Visible: c.Scope})
	if err != nil {
		return nil, err
	}
	return ok(with(toMany(control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })),
		doc{"links": doc{"self": c.link("/v3/isolation_segments/%s/relationships/spaces", s.GUID)}}))
}

// entitleOrgs lets orgs use a segment.
func entitleOrgs(c *call) (*response, error) {
	s, err := c.changeSegment()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	found, err := store.Orgs.By(c.Tx, "guids", req.guids()...)
	if err != nil {
		return nil, err
	}
	known := control.GUIDs(found, func(o *cf.Org) string { return o.GUID })
	if unknown := control.Without(req.guids(), func(g string) bool { return slices.Contains(known, g) }); len(unknown) > 0 {
		return nil, cf.Unprocessable("Unable to entitle organizations %s for isolation segment. Ensure the organizations exist and that you have access to them.", control.Inspect(unknown))
	}
	for _, g := range known {
		if !slices.Contains(s.Orgs, g) {
			s.Orgs = append(s.Orgs, g)
		}
	}
	if err := store.IsolationSegments.Update(c.Tx, s); err != nil {
		return nil, err
	}
	return ok(c.viewEntitled(s))
}

// revokeOrg takes a segment from an org that does not use it.
func revokeOrg(c *call) (*response, error) {
	s, err := c.changeSegment()
	if err != nil {
		return nil, err
	}
	org, err := store.Orgs.Get(c.Tx, c.param("org"))
	if err != nil {
		return nil, err
	}
	if org.SegmentGUID == s.GUID {
		return nil, cf.Unprocessable("Cannot remove the entitlement while this Isolation Segment is assigned as the Default Isolation Segment for the Organization.")
	}
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"isolation_segment_guids": {s.GUID}, "organization_guids": {org.GUID}}})
	if err != nil {
		return nil, err
	}
	if len(spaces) > 0 {
		names := control.GUIDs(spaces, func(s *cf.Space) string { return "'" + s.Name + "'" })
		return nil, cf.Unprocessable("Cannot remove the entitlement while this Isolation Segment is assigned to any Spaces. Currently assigned to: [%s]", strings.Join(names, ", "))
	}
	if err := orgs.LeaveSegment(c.Session, s, org.GUID); err != nil {
		return nil, err
	}
	return noContent()
}
