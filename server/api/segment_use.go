package api

import (
	"cupola/server/control/audit"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

// segmentOf is the relationship of an org or space to its segment.
func (c *call) segmentOf(path, relationship, guid string) doc {
	links := doc{"self": c.link("/v3/%s/relationships/%s", path, relationship)}
	if guid != "" {
		links["related"] = c.link("/v3/isolation_segments/%s", guid)
	}
	return with(toOne(guid), doc{"links": links})
}

func showOrgSegment(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	return ok(c.segmentOf("organizations/"+o.GUID, "default_isolation_segment", o.SegmentGUID))
}

func setOrgSegment(c *call) (*response, error) {
	var req ref
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	if req.Data != nil {
		may, err := orgs.Entitled(c.Session, o.GUID, req.guid())
		if err != nil {
			return nil, err
		}
		if !may {
			return nil, cf.Unprocessable("Unable to assign isolation segment with guid '%s'. Ensure it has been entitled to the organization.", req.guid())
		}
	}
	o.SegmentGUID = req.guid()
	if err := store.Orgs.Update(c.Tx, o); err != nil {
		return nil, err
	}
	return ok(c.segmentOf("organizations/"+o.GUID, "default_isolation_segment", o.SegmentGUID))
}

func showSpaceSegment(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	return ok(c.segmentOf("spaces/"+s.GUID, "isolation_segment", s.SegmentGUID))
}

func setSpaceSegment(c *call) (*response, error) {
	var req ref
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	if req.Data != nil {
		may, err := orgs.Entitled(c.Session, s.OrgGUID, req.guid())
		if err != nil {
			return nil, err
		}
		if !may {
			return nil, cf.Unprocessable("Unable to assign isolation segment with guid '%s'. Ensure it has been entitled to the organization that this space belongs to.", req.guid())
		}
	}
	s.SegmentGUID = req.guid()
	if err := store.Spaces.Update(c.Tx, s); err != nil {
		return nil, err
	}
	if err := orgs.SpaceEvent(c.Session, audit.SpaceUpdate, s); err != nil {
		return nil, err
	}
	return ok(c.segmentOf("spaces/"+s.GUID, "isolation_segment", s.SegmentGUID))
}
