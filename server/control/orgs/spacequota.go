package orgs

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// NewSpaceQuota is a quota to be made for spaces of an org.
type NewSpaceQuota struct {
	QuotaChange
	Relationships struct {
		Organization change.ToOne  `json:"organization"`
		Spaces       change.ToMany `json:"spaces"`
	} `json:"relationships"`
}

// CreateSpaceQuota adds a quota of spaces.
func CreateSpaceQuota(c *control.Session, req NewSpaceQuota) (*cf.SpaceQuota, error) {
	org, err := store.Orgs.Get(c.Tx, req.Relationships.Organization.GUID())
	if err != nil {
		return nil, control.Unprocessable(err, "Organization with guid '%s' does not exist, or you do not have access to it.", req.Relationships.Organization.GUID())
	}
	if err := c.Permit(authz.Place{OrgGUID: org.GUID}); err != nil {
		return nil, err
	}
	q := &cf.SpaceQuota{OrgGUID: org.GUID, Limits: cf.QuotaLimits{PaidServices: true}}
	if err := saveSpaceQuota(c, q, req.QuotaChange, store.SpaceQuotas.Insert); err != nil {
		return nil, err
	}
	guids := req.Relationships.Spaces.GUIDs()
	spaces, err := store.Spaces.Matching(c.Tx, store.Query{Where: map[string][]string{"guids": guids, "organization_guids": {q.OrgGUID}}})
	if err != nil {
		return nil, err
	}
	if unknown := control.Missing(guids, spaceGUIDs(spaces)); len(unknown) > 0 {
		return nil, cf.Unprocessable("Spaces with guids %s do not exist within the organization specified, or you do not have access to them.", control.Inspect(unknown))
	}
	if err := limitedSpaces.give(c, spaces, q.GUID); err != nil {
		return nil, err
	}
	return q, spaceQuotaEvent(c, "create", q, nil, c.Request(c.Asked))
}

// UpdateSpaceQuota changes a quota of spaces.
func UpdateSpaceQuota(c *control.Session, q *cf.SpaceQuota, req QuotaChange) error {
	if err := limitedSpaces.boundable(c, q.GUID, req.Apps.LogRateLimitBytes); err != nil {
		return err
	}
	if err := saveSpaceQuota(c, q, req, store.SpaceQuotas.Update); err != nil {
		return err
	}
	return spaceQuotaEvent(c, "update", q, nil, c.Request(c.Asked))
}

// saveSpaceQuota writes a quota that is one with its org's.
func saveSpaceQuota(c *control.Session, q *cf.SpaceQuota, req QuotaChange, write func(*store.Tx, *cf.SpaceQuota) error) error {
	if req.apply(&q.Name, &q.Limits); q.Name == "" {
		return cf.Unprocessable("Name can't be blank")
	}
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

// DeleteSpaceQuota deletes a quota that no space has.
func DeleteSpaceQuota(c *control.Session, q *cf.SpaceQuota) error {
	if err := limitedSpaces.none(c, q.GUID, "Remove this quota from all spaces before deleting."); err != nil {
		return err
	}
	if err := store.SpaceQuotas.Delete(c.Tx, q.GUID); err != nil {
		return err
	}
	return spaceQuotaEvent(c, "delete", q, nil, nil)
}

// ApplySpaceQuota gives spaces of its org a quota.
func ApplySpaceQuota(c *control.Session, q *cf.SpaceQuota, guids []string) error {
	spaces, unknown, err := visibleSpaces(c, guids)
	switch {
	case err != nil:
		return err
	case len(unknown) > 0:
		return cf.Unprocessable("Spaces with guids %s do not exist, or you do not have access to them.", control.Inspect(unknown))
	case slices.ContainsFunc(spaces, func(s *cf.Space) bool { return s.OrgGUID != q.OrgGUID }):
		return cf.Unprocessable("Space quotas cannot be applied outside of their owning organization.")
	}
	if err := limitedSpaces.apply(c, spaces, q.GUID, q.Limits); err != nil {
		return err
	}
	for _, s := range spaces {
		if err := spaceQuotaEvent(c, "apply", q, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSpaceQuota takes a quota from a space.
func RemoveSpaceQuota(c *control.Session, q *cf.SpaceQuota, space string) error {
	s, err := store.Spaces.Get(c.Tx, space)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if s == nil || s.QuotaGUID != q.GUID {
		return cf.Unprocessable("Unable to remove quota from space with guid '%s'. Ensure the space quota is applied to this space.", space)
	}
	if err := limitedSpaces.give(c, []*cf.Space{s}, ""); err != nil {
		return err
	}
	return spaceQuotaEvent(c, "remove", q, s, nil)
}

// spaceQuotaEvent records what was done to a quota, and with which space.
func spaceQuotaEvent(c *control.Session, what string, q *cf.SpaceQuota, s *cf.Space, data audit.Data) error {
	t := audit.Target{Type: "space_quota", GUID: q.GUID, Name: q.Name, Place: authz.Place{OrgGUID: q.OrgGUID}}
	if s != nil {
		t.Place.SpaceGUID, data = s.GUID, audit.Data{"space_guid": s.GUID, "space_name": s.Name}
	}
	return c.Audit(audit.Of(t.Type, what), t, data)
}
