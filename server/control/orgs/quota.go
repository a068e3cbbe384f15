package orgs

import (
	"math"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// OrgQuotaChange is a change of a quota of orgs. Only a new one names the orgs that
// get it.
type OrgQuotaChange struct {
	QuotaChange
	Domains struct {
		TotalDomains change.Field[int] `json:"total_domains"`
	} `json:"domains"`
	Relationships struct {
		Organizations change.ToMany `json:"organizations"`
	} `json:"relationships"`
}

func (r *OrgQuotaChange) domains(l *cf.QuotaLimits) []limit {
	return []limit{{"Domains", "Total domains", r.Domains.TotalDomains, math.MaxInt32, &l.TotalDomains}}
}

// Validate lists what is wrong with the change, in Cloud Controller's words.
func (r *OrgQuotaChange) Validate() []string {
	return append(r.QuotaChange.Validate(), limitFaults(r.domains(&cf.QuotaLimits{}))...)
}

// CreateQuota adds a quota of orgs.
func CreateQuota(c *control.Session, req OrgQuotaChange) (*cf.OrgQuota, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	q := &cf.OrgQuota{Limits: cf.QuotaLimits{PaidServices: true}}
	if err := saveQuota(c, q, req, store.OrgQuotas.Insert); err != nil {
		return nil, err
	}
	err := ApplyQuota(c, q, req.Relationships.Organizations.GUIDs())
	if control.IsKind(err, cf.UnprocessableEntity) && strings.HasSuffix(err.Error(), "do not exist") {
		err = cf.Unprocessable("%s, or you do not have access to them.", err)
	}
	if err != nil {
		return nil, err
	}
	return q, quotaEvent(c, "create", q, nil, c.Request(c.Asked))
}

// UpdateQuota changes a quota of orgs.
func UpdateQuota(c *control.Session, q *cf.OrgQuota, req OrgQuotaChange) error {
	if err := limitedOrgs.boundable(c, q.GUID, req.Apps.LogRateLimitBytes); err != nil {
		return err
	}
	if err := saveQuota(c, q, req, store.OrgQuotas.Update); err != nil {
		return err
	}
	return quotaEvent(c, "update", q, nil, c.Request(c.Asked))
}

func saveQuota(c *control.Session, q *cf.OrgQuota, req OrgQuotaChange, write func(*store.Tx, *cf.OrgQuota) error) error {
	req.apply(&q.Name, &q.Limits)
	setLimits(req.domains(&q.Limits))
	switch {
	case !atMost(q.Limits.TotalReservedRoutePorts, q.Limits.TotalRoutes):
		return cf.Unprocessable("Total reserved ports must be -1, 0, or a positive integer, and must be less than or equal to total routes.")
	case q.Name == "":
		return cf.Unprocessable("Name can't be blank")
	}
	err := write(c.Tx, q)
	if store.IsTaken(err) {
		return cf.Unprocessable("Organization Quota '%s' already exists.", q.Name)
	}
	return err
}

// DeleteQuota deletes a quota that no org has.
func DeleteQuota(c *control.Session, q *cf.OrgQuota) error {
	if err := limitedOrgs.none(c, q.GUID, "Apply different quotas to those organizations before deleting."); err != nil {
		return err
	}
	if err := store.OrgQuotas.Delete(c.Tx, q.GUID); err != nil {
		return err
	}
	return quotaEvent(c, "delete", q, nil, nil)
}

// ApplyQuota gives orgs a quota.
func ApplyQuota(c *control.Session, q *cf.OrgQuota, guids []string) error {
	orgs, err := store.Orgs.By(c.Tx, "guids", guids...)
	if err != nil {
		return err
	}
	known := control.GUIDs(orgs, func(o *cf.Org) string { return o.GUID })
	if unknown := control.Missing(guids, known); len(unknown) > 0 {
		return cf.Unprocessable("Organizations with guids %s do not exist", control.Inspect(unknown))
	}
	if err := limitedOrgs.apply(c, orgs, q.GUID, q.Limits); err != nil {
		return err
	}
	for _, o := range orgs {
		if err := quotaEvent(c, "apply", q, o, nil); err != nil {
			return err
		}
	}
	return nil
}

// quotaEvent records what was done to a quota, and with which org.
func quotaEvent(c *control.Session, what string, q *cf.OrgQuota, o *cf.Org, data audit.Data) error {
	t := audit.Target{Type: "organization_quota", GUID: q.GUID, Name: q.Name}
	if o != nil {
		t.Place.OrgGUID, data = o.GUID, audit.Data{"organization_guid": o.GUID, "organization_name": o.Name}
	}
	return c.Audit(audit.Of(t.Type, what), t, data)
}
