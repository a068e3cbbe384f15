package orgs

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

// QuotaTaken says in Cloud Controller's words that there is such a quota.
func QuotaTaken(q *cf.OrgQuota, err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Organization Quota '%s' already exists.", q.Name)
	}
	return err
}

// QuotaEvent records an event of a quota of orgs.
func QuotaEvent(c *control.Session, what string, q *cf.OrgQuota, data audit.Data) error {
	return c.Audit(audit.Of("organization_quota", what), audit.Target{Type: "organization_quota", GUID: q.GUID, Name: q.Name}, data)
}

// ApplyQuota gives orgs a quota.
func ApplyQuota(c *control.Session, q *cf.OrgQuota, guids []string) error {
	orgs, err := store.Orgs.By(c.Tx, "guids", guids...)
	if err != nil {
		return err
	}
	known := control.GUIDs(orgs, func(o *cf.Org) string { return o.GUID })
	if unknown := control.Without(guids, func(g string) bool { return slices.Contains(known, g) }); len(unknown) > 0 {
		return cf.Unprocessable("Organizations with guids %s do not exist", control.Inspect(unknown))
	}
	if q.Limits.LogRateLimitBytes != nil {
		n, err := quota.UnlimitedLogs(c.Tx, "organization_guids", known...)
		if err != nil {
			return err
		}
		if n > 0 {
			return cf.Unprocessable("Current usage exceeds new quota values. The org(s) being assigned this quota contain apps running with an unlimited log rate limit.")
		}
	}
	for _, o := range orgs {
		o.QuotaGUID = q.GUID
		if err := store.Orgs.Update(c.Tx, o); err != nil {
			return err
		}
		if err := c.Audit(audit.OrgQuotaApply, audit.Target{Type: "organization_quota", GUID: q.GUID, Name: q.Name, Place: authz.Place{OrgGUID: o.GUID}},
			audit.Data{"organization_guid": o.GUID, "organization_name": o.Name}); err != nil {
			return err
		}
	}
	return nil
}

// LogsBounded refuses to bound the logs of a quota whose orgs have apps without
// such a bound.
func LogsBounded(c *control.Session, q *cf.OrgQuota, asked change.Field[int]) error {
	if !asked.Set || asked.Null {
		return nil
	}
	orgs, _, err := store.Orgs.List(c.Tx, store.Query{Where: map[string][]string{"organization_quota_guids": {q.GUID}}, Order: "name"})
	if err != nil {
		return err
	}
	var names []string
	for _, o := range orgs {
		n, err := quota.UnlimitedLogs(c.Tx, "organization_guids", o.GUID)
		if err != nil {
			return err
		}
		if n > 0 {
			names = append(names, o.Name)
		}
	}
	return quota.UnboundedIn("org", names)
}

// AtMost tells whether a limit, of which nil is none, is not above another.
func AtMost(a, b *int) bool {
	return a == nil || b == nil || *a <= *b
}

// SpacesFor are spaces of the org of a new quota.
func SpacesFor(c *control.Session, q *cf.SpaceQuota, guids []string) ([]*cf.Space, error) {
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids, "organization_guids": {q.OrgGUID}}})
	known := control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
	if unknown := control.Without(guids, func(g string) bool { return slices.Contains(known, g) }); err == nil && len(unknown) > 0 {
		err = cf.Unprocessable("Spaces with guids %s do not exist within the organization specified, or you do not have access to them.", control.Inspect(unknown))
	}
	return spaces, err
}

// SaveSpaceQuota writes a quota that is one with its org's.
func SaveSpaceQuota(c *control.Session, q *cf.SpaceQuota, write func(*store.Tx, *cf.SpaceQuota) error) error {
	org, err := store.Orgs.Get(c.Tx, q.OrgGUID)
	if err != nil {
		return err
	}
	ports := q.Limits.TotalReservedRoutePorts
	all, err := store.OrgQuotas.Get(c.Tx, org.QuotaGUID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if !AtMost(ports, q.Limits.TotalRoutes) || all != nil && !AtMost(ports, all.Limits.TotalReservedRoutePorts) {
		return cf.Unprocessable("Total reserved ports must be -1, 0, or a positive integer, must be less than or equal to total routes, " +
			"and must be less than or equal to total reserved ports for the organization quota.")
	}
	err = write(c.Tx, q)
	if store.IsTaken(err) {
		return cf.Unprocessable("Space Quota '%s' already exists.", q.Name)
	}
	return err
}

// SpaceQuotaEvent records what was done to a quota, and of which space it was.
func SpaceQuotaEvent(c *control.Session, what string, q *cf.SpaceQuota, s *cf.Space, data audit.Data) error {
	at := authz.Place{OrgGUID: q.OrgGUID}
	if s != nil {
		at.SpaceGUID, data = s.GUID, audit.Data{"space_guid": s.GUID, "space_name": s.Name}
	}
	return c.Audit(audit.Of("space_quota", what), audit.Target{Type: "space_quota", GUID: q.GUID, Name: q.Name, Place: at}, data)
}

// SpaceLogsBounded refuses to bound the logs of a quota whose spaces have apps
// without such a bound.
func SpaceLogsBounded(c *control.Session, q *cf.SpaceQuota, asked change.Field[int]) error {
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

// SpacesToLimit are spaces that a quota can be given to.
func SpacesToLimit(c *control.Session, q *cf.SpaceQuota, guids []string) ([]*cf.Space, error) {
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
