package api

import (
	"cupola/server/control/orgs"
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

// findOrg finds the org of {guid}.
func findOrg(c *call) (*cf.Org, error) { return c.Org(c.guid()) }

// createOrg makes an org, where the actor may do that at all.
func createOrg(c *call) (*response, error) {
	if err := orgs.MayCreate(c.Session); err != nil {
		return nil, err
	}
	return create(orgs.Create, viewOrg)(c)
}
