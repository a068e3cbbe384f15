package api

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewSpaceQuota(c *call, q *cf.SpaceQuota) doc {
	return with(with(resource(q.Resource), viewLimits(q.Name, q.Limits)), doc{
		"relationships": doc{"organization": toOne(q.OrgGUID), "spaces": toMany(c.spacesWith(q))},
		"links":         doc{"self": c.link("/v3/space_quotas/%s", q.GUID), "organization": c.link("/v3/organizations/%s", q.OrgGUID)},
	})
}

// spacesWith are the spaces with a quota that the actor sees.
func (c *call) spacesWith(q *cf.SpaceQuota) []string {
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"space_quota_guids": {q.GUID}}, Visible: c.Scope})
	if err != nil {
		return nil
	}
	return control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
}

// spaceQuotaRequest is a request for a new quota of spaces.
type spaceQuotaRequest struct {
	quotaRequest
	Relationships struct {
		Organization ref  `json:"organization"`
		Spaces       refs `json:"spaces"`
	} `json:"relationships"`
}

func createSpaceQuota(c *call) (*response, error) {
	var req spaceQuotaRequest
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	org, err := store.Orgs.Get(c.Tx, req.Relationships.Organization.guid())
	if err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "Organization with guid '%s' does not exist, or you do not have access to it.", req.Relationships.Organization.guid())
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return nil, err
	}
	q := &cf.SpaceQuota{OrgGUID: org.GUID, Limits: cf.QuotaLimits{PaidServices: true}}
	req.apply(&q.Name, &q.Limits)
	if q.Name == "" {
		return nil, cf.Unprocessable("Name can't be blank")
	}
	if err := orgs.SaveSpaceQuota(c.Session, q, store.SpaceQuotas.Insert); err != nil {
		return nil, err
	}
	spaces, err := orgs.SpacesFor(c.Session, q, req.Relationships.Spaces.guids())
	if err != nil {
		return nil, err
	}
	for _, s := range spaces {
		s.QuotaGUID = q.GUID
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return nil, err
		}
	}
	if err := orgs.SpaceQuotaEvent(c.Session, "create", q, nil, doc{"request": audited}); err != nil {
		return nil, err
	}
	return created(viewSpaceQuota(c, q))
}

// spaceQuota is the quota of {guid}, if the actor sees it and satisfies the
// rule in its org.
func (c *call) spaceQuota() (*cf.SpaceQuota, error) {
	q, err := store.SpaceQuotas.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return q, c.Permit(authz.Place{OrgGUID: q.OrgGUID})
}

func updateSpaceQuota(c *call) (*response, error) {
	q, err := c.spaceQuota()
	if err != nil {
		return nil, err
	}
	var req quotaRequest
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	if err := orgs.SpaceLogsBounded(c.Session, q, req.Apps.LogRateLimitBytes); err != nil {
		return nil, err
	}
	req.apply(&q.Name, &q.Limits)
	if err := orgs.SaveSpaceQuota(c.Session, q, store.SpaceQuotas.Update); err != nil {
		return nil, err
	}
	if err := orgs.SpaceQuotaEvent(c.Session, "update", q, nil, doc{"request": audited}); err != nil {
		return nil, err
	}
	return ok(viewSpaceQuota(c, q))
}

func deleteSpaceQuota(c *call) (*response, error) {
	q, err := c.spaceQuota()
	if err != nil {
		return nil, err
	}
	n, err := store.Spaces.Count(c.Tx, store.Query{Where: map[string][]string{"space_quota_guids": {q.GUID}}})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, cf.Unprocessable("This quota is applied to one or more spaces. Remove this quota from all spaces before deleting.")
	}
	if err := store.SpaceQuotas.Delete(c.Tx, q.GUID); err != nil {
		return nil, err
	}
	if err := orgs.SpaceQuotaEvent(c.Session, "delete", q, nil, nil); err != nil {
		return nil, err
	}
	return c.accepted("space_quota.delete", "space_quotas", q.GUID)
}

func applySpaceQuota(c *call) (*response, error) {
	q, err := c.spaceQuota()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	spaces, err := orgs.SpacesToLimit(c.Session, q, req.guids())
	if err != nil {
		return nil, err
	}
	for _, s := range spaces {
		s.QuotaGUID = q.GUID
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return nil, err
		}
		if err := orgs.SpaceQuotaEvent(c.Session, "apply", q, s, nil); err != nil {
			return nil, err
		}
	}
	return ok(with(toMany(c.spacesWith(q)), doc{"links": doc{"self": c.link("/v3/space_quotas/%s/relationships/spaces", q.GUID)}}))
}

func removeSpaceQuota(c *call) (*response, error) {
	q, err := c.spaceQuota()
	if err != nil {
		return nil, err
	}
	s, err := store.Spaces.Get(c.Tx, c.param("space"))
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	if s == nil || s.QuotaGUID != q.GUID {
		return nil, cf.Unprocessable("Unable to remove quota from space with guid '%s'. Ensure the space quota is applied to this space.", c.param("space"))
	}
	s.QuotaGUID = ""
	if err := store.Spaces.Update(c.Tx, s); err != nil {
		return nil, err
	}
	if err := orgs.SpaceQuotaEvent(c.Session, "remove", q, s, nil); err != nil {
		return nil, err
	}
	return noContent()
}
