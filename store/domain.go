package store

import "cupola/store/cf"

// Domains are the domains. The filter usable_by_organization_guids takes all
// those in which an org can have routes.
var Domains = &Table[cf.Domain]{table{
	name: "domains", singular: "Domain", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, internal, org_guid, shared_orgs, router_group_guid, enforces_policies, policies_scope",
	fields: fieldsOf(func(v *cf.Domain, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.Internal, nullColumn{&v.OrgGUID}, jsonColumn{&v.SharedOrgs}, &v.RouterGroupGUID, &v.EnforcesPolicies, &v.PoliciesScope}
	}),
	resource: resourceOf(func(v *cf.Domain) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                        "domains.guid",
		"names":                        "name",
		"organization_guids":           "org_guid",
		"usable_by_organization_guids": "org_guid IS NULL OR org_guid IN (SELECT value FROM json_each(?)) OR EXISTS (SELECT 1 FROM json_each(shared_orgs) o WHERE o.value IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "org_guid IS NULL OR org_guid IN :domain_orgs OR EXISTS (SELECT 1 FROM json_each(shared_orgs) o WHERE o.value IN :domain_orgs)",
}}
