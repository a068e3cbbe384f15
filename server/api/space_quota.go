package api

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
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
	if err := c.saveSpaceQuota(q, store.SpaceQuotas.Insert); err != nil {
		return nil, err
	}
	spaces, err := c.spacesFor(q, req.Relationships.Spaces.guids())
	if err != nil {
		return nil, err
	}
	for _, s := range spaces {
		s.QuotaGUID = q.GUID
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return nil, err
		}
	}
	if err := c.spaceQuotaEvent("create", q, nil, doc{"request": audited}); err != nil {
		return nil, err
	}
	return created(viewSpaceQuota(c, q))
}

// spacesFor are spaces of the org of a new quota.
func (c *call) spacesFor(q *cf.SpaceQuota, guids []string) ([]*cf.Space, error) {
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids, "organization_guids": {q.OrgGUID}}})
	known := control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
	if unknown := control.Without(guids, func(g string) bool { return slices.Contains(known, g) }); err == nil && len(unknown) > 0 {
		err = cf.Unprocessable("Spaces with guids %s do not exist within the organization specified, or you do not have access to them.", control.Inspect(unknown))
	}
	return spaces, err
}

// saveSpaceQuota writes a quota that is one with its org's.
func (c *call) saveSpaceQuota(q *cf.SpaceQuota, write func(*store.Tx, *cf.SpaceQuota) error) error {
	org, err := store.Orgs.Get(c.Tx, q.OrgGUID)
	if err != nil {
		return err
	}
	ports := q.Limits.TotalReservedRoutePorts
	all, err := store.OrgQuotas.Get(c.Tx, org.QuotaGUID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if !atMost(ports, q.Limits.TotalRoutes) || all != nil && !atMost(ports, all.Limits.TotalReservedRoutePorts) {
		return cf.Unprocessable("Total reserved ports must be -1, 0, or a positive integer, must be less than or equal to total routes, " +
			"and must be less than or equal to total reserved ports for the organization quota.")
	}
	err = write(c.Tx, q)
	if store.IsTaken(err) {
		return cf.Unprocessable("Space Quota '%s' already exists.", q.Name)
	}
	return err
}

// spaceQuotaEvent records what was done to a quota, and of which space it was.
func (c *call) spaceQuotaEvent(what string, q *cf.SpaceQuota, s *cf.Space, data doc) error {
	at := authz.Place{OrgGUID: q.OrgGUID}
	if s != nil {
		at.SpaceGUID, data = s.GUID, doc{"space_guid": s.GUID, "space_name": s.Name}
	}
	return c.Audit(audit.Of("space_quota", what), audit.Target{Type: "space_quota", GUID: q.GUID, Name: q.Name, Place: at}, data)
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
	if err := c.spaceLogsBounded(q, req.Apps.LogRateLimitBytes); err != nil {
		return nil, err
	}
	req.apply(&q.Name, &q.Limits)
	if err := c.saveSpaceQuota(q, store.SpaceQuotas.Update); err != nil {
		return nil, err
	}
	if err := c.spaceQuotaEvent("update", q, nil, doc{"request": audited}); err != nil {
		return nil, err
	}
	return ok(viewSpaceQuota(c, q))
}

// spaceLogsBounded refuses to bound the logs of a quota whose spaces have apps
// without such a bound.
func (c *call) spaceLogsBounded(q *cf.SpaceQuota, asked change.Field[int]) error {
	if !asked.Set || asked.Null {
		return nil
	}
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"space_quota_guids": {q.GUID}}, Order: "name"})
	if err != nil {
		return err
	}
	var names []string
	for _, s := range spaces {
		n, err := quota.UnlimitedLogs(c.Tx, "space_guids", s.GUID)
		if err != nil {
			return err
		}
		if n > 0 {
			names = append(names, s.Name)
		}
	}
	return quota.UnboundedIn("space", names)
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
	if err := c.spaceQuotaEvent("delete", q, nil, nil); err != nil {
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
	spaces, err := c.spacesToLimit(q, req.guids())
	if err != nil {
		return nil, err
	}
	for _, s := range spaces {
		s.QuotaGUID = q.GUID
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return nil, err
		}
		if err := c.spaceQuotaEvent("apply", q, s, nil); err != nil {
			return nil, err
		}
	}
	return ok(with(toMany(c.spacesWith(q)), doc{"links": doc{"self": c.link("/v3/space_quotas/%s/relationships/spaces", q.GUID)}}))
}

// spacesToLimit are spaces that a quota can be given to.
func (c *call) spacesToLimit(q *cf.SpaceQuota, guids []string) ([]*cf.Space, error) {
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	if err != nil {
		return nil, err
	}
	known := control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
	if unknown := control.Without(guids, func(g string) bool { return slices.Contains(known, g) }); len(unknown) > 0 {
		return nil, cf.Unprocessable("Spaces with guids %s do not exist, or you do not have access to them.", control.Inspect(unknown))
	}
	if slices.ContainsFunc(spaces, func(s *cf.Space) bool { return s.OrgGUID != q.OrgGUID }) {
		return nil, cf.Unprocessable("Space quotas cannot be applied outside of their owning organization.")
	}
	if q.Limits.LogRateLimitBytes == nil {
		return spaces, nil
	}
	n, err := quota.UnlimitedLogs(c.Tx, "space_guids", known...)
	if err == nil && n > 0 {
		err = cf.Unprocessable("Current usage exceeds new quota values. The space(s) being assigned this quota contain apps running with an unlimited log rate limit.")
	}
	return spaces, err
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
	if err := c.spaceQuotaEvent("remove", q, s, nil); err != nil {
		return nil, err
	}
	return noContent()
}
