package api

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/deletion"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewOrg(c *call, o *cf.Org) doc {
	return with(resource(o.Resource), doc{
		"name": o.Name, "suspended": o.Suspended, "metadata": metadata(o.Metadata),
		"relationships": doc{"quota": toOne(o.QuotaGUID)},
		"links": doc{
			"self":           c.link("/v3/organizations/%s", o.GUID),
			"domains":        c.link("/v3/organizations/%s/domains", o.GUID),
			"default_domain": c.link("/v3/organizations/%s/domains/default", o.GUID),
			"quota":          c.link("/v3/organization_quotas/%s", o.QuotaGUID),
		},
	})
}

type orgRequest struct {
	Name      change.Field[string] `json:"name"`
	Suspended change.Field[bool]   `json:"suspended"`
	Metadata  *change.Metadata     `json:"metadata"`
}

func createOrg(c *call) (*response, error) {
	var req orgRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := control.Invalid(control.NameFaults(req.Name.V)); err != nil {
		return nil, err
	}
	if err := c.mayCreateOrg(req); err != nil {
		return nil, err
	}
	o := &cf.Org{Name: req.Name.V, Suspended: req.Suspended.V}
	if q, err := store.OrgQuotas.First(c.Tx, store.Query{}); err == nil {
		o.QuotaGUID = q.GUID // the oldest is the default
	}
	if err := req.Metadata.Apply(&o.Metadata); err != nil {
		return nil, err
	}
	if err := orgs.Insert(c.Session, o); err != nil {
		return nil, err
	}
	return created(viewOrg(c, o))
}

// mayCreateOrg lets users make orgs who are no admins when the operator wants
// it so.
func (c *call) mayCreateOrg(req orgRequest) error {
	if c.Actor.Admin {
		return c.PermitAdmin()
	}
	c.Checked = true
	f, err := c.Flag("user_org_creation")
	if err == nil && (!f.Enabled || req.Suspended.V) {
		err = access.NotAuthorized()
	}
	return err
}

// org is the org of {guid}, if the actor sees it and satisfies the rule.
func (c *call) org() (*cf.Org, error) {
	o, err := store.Orgs.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return o, c.Permit(authz.Place{OrgGUID: o.GUID})
}

func updateOrg(c *call) (*response, error) {
	var req orgRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	if req.Suspended.V && !c.Actor.Admin {
		return nil, access.NotAuthorized()
	}
	o.Name, o.Suspended = req.Name.Or(o.Name), req.Suspended.Or(o.Suspended)
	if err := control.Invalid(control.NameFaults(o.Name)); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&o.Metadata); err != nil {
		return nil, err
	}
	err = store.Orgs.Update(c.Tx, o)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("Organization name '%s' already exists.", o.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := c.Audit(audit.OrgUpdate, audit.Target{Type: "organization", GUID: o.GUID, Name: o.Name, Place: authz.Place{OrgGUID: o.GUID}}, nil); err != nil {
		return nil, err
	}
	return ok(viewOrg(c, o))
}

func deleteOrg(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	return c.deletes(deletion.Org, "organizations", o.GUID)
}
