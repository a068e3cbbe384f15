package api

import (
	"slices"
	"time"

	"cupola/store/cf"
)

// sharedSegment is the isolation segment that everything runs in that has no
// other: there is one machine. The GUID is Cloud Controller's.
var sharedSegment = segment{cf.Resource{GUID: "933b4c58-120b-499a-b85d-4b6fc9e2903b", CreatedAt: time.Unix(0, 0)}, "shared"}

type segment struct {
	cf.Resource
	name string
}

func viewSegment(c *call, s *segment) doc {
	self := "/v3/isolation_segments/" + s.GUID
	return with(resource(s.Resource), doc{"name": s.name, "metadata": metadata(cf.Metadata{}),
		"links": doc{"self": c.link("%s", self), "organizations": c.link("%s/organizations", self)}})
}

// segmentRows is what parseQuery needs to know of isolation segments.
type segmentRows struct{}

func (segmentRows) Filters() []string { return []string{"guids", "names", "organization_guids"} }
func (segmentRows) Orders() []string  { return []string{"created_at", "updated_at", "name"} }
func (segmentRows) Labelled() bool    { return true }

// listSegments lists the one segment to those who see the whole platform. No
// org is entitled to it: none has to be.
func listSegments(c *call) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), segmentRows{})
	if err != nil {
		return nil, err
	}
	var found []*segment
	if c.scope == nil && accepts(q, "guids", sharedSegment.GUID) && accepts(q, "names", sharedSegment.name) && q.Where["organization_guids"] == nil && len(q.Labels) == 0 {
		found = []*segment{&sharedSegment}
	}
	return ok(page(c, q, window(found, q), len(found), viewSegment))
}

func accepts(q listQuery, filter, value string) bool {
	values, set := q.Where[filter]
	return !set || slices.Contains(values, value)
}

func (c *call) segment() (*segment, error) {
	if c.scope != nil || c.guid() != sharedSegment.GUID {
		return nil, cf.Errorf(cf.ResourceNotFound, "Isolation segment not found")
	}
	return &sharedSegment, nil
}

func showSegment(c *call) (*response, error) {
	s, err := c.segment()
	if err != nil {
		return nil, err
	}
	return ok(viewSegment(c, s))
}

// listSegmentOrgs lists the orgs that are entitled to a segment: none has to
// be to the shared one.
func listSegmentOrgs(c *call) (*response, error) {
	if _, err := c.segment(); err != nil {
		return nil, err
	}
	return listNone(c)
}

func createSegment(c *call) (*response, error) {
	if err := c.permitAdmin(); err != nil {
		return nil, err
	}
	return nil, cf.Unprocessable("Isolation segments are not available here yet")
}

// segmentOf is the relationship of an org or space to its segment.
func (c *call) segmentOf(path, relationship string) doc {
	return doc{"data": nil, "links": doc{"self": c.link("/v3/%s/relationships/%s", path, relationship)}}
}

func showOrgSegment(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	return ok(c.segmentOf("organizations/"+o.GUID, "default_isolation_segment"))
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
		return nil, cf.Unprocessable("Unable to assign isolation segment with guid '%s'. Ensure it has been entitled to the organization.", req.guid())
	}
	return ok(c.segmentOf("organizations/"+o.GUID, "default_isolation_segment"))
}

func showSpaceSegment(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	return ok(c.segmentOf("spaces/"+s.GUID, "isolation_segment"))
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
	if req.Data != nil && req.guid() != sharedSegment.GUID {
		return nil, cf.Unprocessable("Unable to assign isolation segment with guid '%s'. Ensure it has been entitled to the organization that this space belongs to.", req.guid())
	}
	return ok(c.segmentOf("spaces/"+s.GUID, "isolation_segment"))
}
