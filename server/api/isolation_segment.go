package api

import (
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewSegment(c *call, s *cf.IsolationSegment) doc {
	self := "/v3/isolation_segments/" + s.GUID
	return with(resource(s.Resource), doc{"name": s.Name, "metadata": metadata(s.Metadata),
		"links": doc{"self": c.link("%s", self), "organizations": c.link("%s/organizations", self)}})
}

// seeSegment finds the isolation segment of {guid} for one who reads: one sees it
// whose org is entitled to it.
func seeSegment(c *call) (*cf.IsolationSegment, error) {
	return store.IsolationSegments.Visible(c.Tx, c.guid(), c.Scope)
}

var findSegment = ofPlatform(store.IsolationSegments)

// findOwnSegment is findSegment for those that can be changed.
func findOwnSegment(c *call) (*cf.IsolationSegment, error) {
	s, err := findSegment(c)
	if err == nil {
		err = orgs.OwnSegment(s, "update")
	}
	return s, err
}

// listSegmentOrgs lists the orgs that are entitled to a segment.
func listSegmentOrgs(c *call) (*response, error) {
	s, err := seeSegment(c)
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Orgs, viewOrg, func(q *listQuery) error {
		q.Where["guids"] = s.Orgs
		return nil
	})
}

func viewEntitled(c *call, s *cf.IsolationSegment) doc {
	self := "/v3/isolation_segments/" + s.GUID
	return with(toMany(visibleOrgs(c, s.Orgs)), doc{"links": doc{"self": c.link("%s/relationships/organizations", self), "related": c.link("%s/organizations", self)}})
}

func viewSegmentSpaces(c *call, s *cf.IsolationSegment) doc {
	return with(toMany(spacesWith(c, "isolation_segment_guids", s.GUID)), doc{"links": doc{"self": c.link("/v3/isolation_segments/%s/relationships/spaces", s.GUID)}})
}

// viewSegmentOf is the relationship of an org or space to its segment.
func viewSegmentOf(c *call, path, relationship, guid string) doc {
	links := doc{"self": c.link("/v3/%s/relationships/%s", path, relationship)}
	if guid != "" {
		links["related"] = c.link("/v3/isolation_segments/%s", guid)
	}
	return with(toOne(guid), doc{"links": links})
}

func viewOrgSegment(c *call, o *cf.Org) doc {
	return viewSegmentOf(c, "organizations/"+o.GUID, "default_isolation_segment", o.SegmentGUID)
}

func viewSpaceSegment(c *call, s *cf.Space) doc {
	return viewSegmentOf(c, "spaces/"+s.GUID, "isolation_segment", s.SegmentGUID)
}
