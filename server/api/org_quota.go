package api

import (
	"math"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewOrgQuota(c *call, q *cf.OrgQuota) doc {
	return with(with(resource(q.Resource), viewLimits(q.Name, q.Limits)), doc{
		"domains":       doc{"total_domains": q.Limits.TotalDomains},
		"relationships": doc{"organizations": toMany(c.orgsWith(q))},
		"links":         doc{"self": c.link("/v3/organization_quotas/%s", q.GUID)},
	})
}

// orgsWith are the orgs with a quota that the actor sees.
func (c *call) orgsWith(q *cf.OrgQuota) []string {
	orgs, _, err := store.Orgs.List(c.Tx, store.Query{Where: map[string][]string{"organization_quota_guids": {q.GUID}}, Visible: c.Scope})
	if err != nil {
		return nil
	}
	return control.GUIDs(orgs, func(o *cf.Org) string { return o.GUID })
}

// orgQuotaRequest is a request about a quota of orgs.
type orgQuotaRequest struct {
	quotaRequest
	Domains struct {
		TotalDomains change.Field[int] `json:"total_domains"`
	} `json:"domains"`
	Relationships struct {
		Organizations refs `json:"organizations"`
	} `json:"relationships"`
}

func (r *orgQuotaRequest) domains(l *cf.QuotaLimits) []limit {
	return []limit{{"Domains", "Total domains", r.Domains.TotalDomains, math.MaxInt32, &l.TotalDomains}}
}

func (r *orgQuotaRequest) Validate() []string {
	return append(r.quotaRequest.Validate(), limitFaults(r.domains(&cf.QuotaLimits{}))...)
}

func (r *orgQuotaRequest) apply(q *cf.OrgQuota) error {
	r.quotaRequest.apply(&q.Name, &q.Limits)
	setLimits(r.domains(&q.Limits))
	if !orgs.AtMost(q.Limits.TotalReservedRoutePorts, q.Limits.TotalRoutes) {
		return cf.Unprocessable("Total reserved ports must be -1, 0, or a positive integer, and must be less than or equal to total routes.")
	}
	return nil
}

func createOrgQuota(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req orgQuotaRequest
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	q := &cf.OrgQuota{Limits: cf.QuotaLimits{PaidServices: true}}
	if err := req.apply(q); err != nil {
		return nil, err
	}
	if q.Name == "" {
		return nil, cf.Unprocessable("Name can't be blank")
	}
	if err := orgs.QuotaTaken(q, store.OrgQuotas.Insert(c.Tx, q)); err != nil {
		return nil, err
	}
	if err := orgs.ApplyQuota(c.Session, q, req.Relationships.Organizations.guids()); err != nil {
		return nil, err
	}
	if err := orgs.QuotaEvent(c.Session, "create", q, doc{"request": audited}); err != nil {
		return nil, err
	}
	return created(viewOrgQuota(c, q))
}

// orgQuota is the quota of {guid}, if the actor is an admin.
func (c *call) orgQuota() (*cf.OrgQuota, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	return store.OrgQuotas.Get(c.Tx, c.guid())
}

func updateOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	var req orgQuotaRequest
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	if err := orgs.LogsBounded(c.Session, q, req.Apps.LogRateLimitBytes); err != nil {
		return nil, err
	}
	if err := req.apply(q); err != nil {
		return nil, err
	}
	if err := orgs.QuotaTaken(q, store.OrgQuotas.Update(c.Tx, q)); err != nil {
		return nil, err
	}
	if err := orgs.QuotaEvent(c.Session, "update", q, doc{"request": audited}); err != nil {
		return nil, err
	}
	return ok(viewOrgQuota(c, q))
}

func deleteOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	n, err := store.Orgs.Count(c.Tx, store.Query{Where: map[string][]string{"organization_quota_guids": {q.GUID}}})
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, cf.Unprocessable("This quota is applied to one or more organizations. Apply different quotas to those organizations before deleting.")
	}
	if err := store.OrgQuotas.Delete(c.Tx, q.GUID); err != nil {
		return nil, err
	}
	if err := orgs.QuotaEvent(c.Session, "delete", q, nil); err != nil {
		return nil, err
	}
	return c.accepted("organization_quota.delete", "organization_quotas", q.GUID)
}

func applyOrgQuota(c *call) (*response, error) {
	q, err := c.orgQuota()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := orgs.ApplyQuota(c.Session, q, req.guids()); err != nil {
		return nil, err
	}
	return ok(with(toMany(c.orgsWith(q)), doc{"links": doc{"self": c.link("/v3/organization_quotas/%s/relationships/organizations", q.GUID)}}))
}

// SeedQuota makes the quota that new orgs get, with the limits of Cloud
// Foundry's own default deployment, when there is no quota.
func SeedQuota(tx *store.Tx) error {
	n, err := store.OrgQuotas.Count(tx, store.Query{})
	if err != nil || n > 0 {
		return err
	}
	memory, routes, ports := 102400, 1000, 100
	return store.OrgQuotas.Insert(tx, &cf.OrgQuota{Name: "default", Limits: cf.QuotaLimits{
		PaidServices: true, TotalMemoryMB: &memory, TotalRoutes: &routes, TotalReservedRoutePorts: &ports}})
}
