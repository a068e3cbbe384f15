package api

import (
	"cupola/server/authz"
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

func createOrg(c *call) (*response, error) {
	var req orgs.OrgChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	o, err := orgs.Create(c.Session, req)
	if err != nil {
		return nil, err
	}
	return created(viewOrg(c, o))
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
	var req orgs.OrgChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	if err := orgs.Update(c.Session, o, req); err != nil {
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
