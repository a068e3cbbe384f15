package store

import "cupola/store/cf"

// ServicePlans are the plans of service offerings. One sees what is public,
// what one's orgs may see, and the plans of brokers of the spaces of which one
// is a member.
var ServicePlans = servicePlans{&Table[cf.ServicePlan]{table{
	name: "service_plans", singular: "Service plan", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, offering_guid, catalog_id, name, description, active, free, public, " +
		"bindable, plan_updateable, maximum_polling_duration, maintenance_info, broker_metadata, schemas, binding_rotatable",
	fields: fieldsOf(func(v *cf.ServicePlan, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.OfferingGUID, &v.CatalogID, &v.Name, &v.Description, &v.Active, &v.Free, &v.Public,
			&v.Bindable, &v.PlanUpdateable, &v.MaximumPollingDuration, jsonColumn{&v.MaintenanceInfo}, textColumn{&v.BrokerMetadata}, jsonColumn{&v.Schemas}, &v.BindingRotatable}
	}),
	resource: resourceOf(func(v *cf.ServicePlan) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                  "service_plans.guid",
		"names":                  "service_plans.name",
		"available":              "active IN (SELECT value = 'true' FROM json_each(?))",
		"broker_catalog_ids":     "catalog_id",
		"service_offering_guids": "offering_guid",
		"service_offering_names": "offering_guid IN (SELECT guid FROM service_offerings WHERE name IN (SELECT value FROM json_each(?)))",
		"service_broker_guids":   "offering_guid IN (SELECT guid FROM service_offerings WHERE broker_guid IN (SELECT value FROM json_each(?)))",
		"service_broker_names": "offering_guid IN (SELECT o.guid FROM service_offerings o JOIN service_brokers b ON b.guid = o.broker_guid " +
			"WHERE b.name IN (SELECT value FROM json_each(?)))",
		"service_instance_guids": "service_plans.guid IN (SELECT plan_guid FROM service_instances WHERE guid IN (SELECT value FROM json_each(?)))",
		"organization_guids":     planInOrgs,
		"space_guids":            planInSpaces,
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "service_plans.name"},
	visible: planVisible + " OR " + planOfBrokers + brokersOfMembers + ")",
}}}

type servicePlans struct{ *Table[cf.ServicePlan] }

// Conditions over a row of service_plans.
const (
	planOfBrokers    = "offering_guid IN (SELECT guid FROM service_offerings WHERE broker_guid IN "
	brokersOfMembers = "(SELECT guid FROM service_brokers WHERE space_guid IN :member_spaces)"

	planVisible = "(public OR EXISTS (SELECT 1 FROM service_plan_visibilities v WHERE v.plan_guid = service_plans.guid AND v.org_guid IN :orgs))"
	planInOrgs  = "(public OR EXISTS (SELECT 1 FROM service_plan_visibilities v WHERE v.plan_guid = service_plans.guid " +
		"AND v.org_guid IN (SELECT value FROM json_each(?))) OR " +
		planOfBrokers + "(SELECT b.guid FROM service_brokers b JOIN spaces s ON s.guid = b.space_guid WHERE s.org_guid IN (SELECT value FROM json_each(?)))))"
	planInSpaces = "(public OR EXISTS (SELECT 1 FROM service_plan_visibilities v JOIN spaces s ON s.org_guid = v.org_guid " +
		"WHERE v.plan_guid = service_plans.guid AND s.guid IN (SELECT value FROM json_each(?))) OR " +
		planOfBrokers + "(SELECT guid FROM service_brokers WHERE space_guid IN (SELECT value FROM json_each(?)))))"
)

// ServicePlanVisibilities are the orgs that may see plans.
var ServicePlanVisibilities = &Table[cf.ServicePlanVisibility]{table{
	name: "service_plan_visibilities", singular: "Service plan visibility",
	columns: "guid, created_at, updated_at, plan_guid, org_guid",
	fields: fieldsOf(func(v *cf.ServicePlanVisibility, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.PlanGUID, &v.OrgGUID}
	}),
	resource: resourceOf(func(v *cf.ServicePlanVisibility) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "service_plan_visibilities.guid",
		"service_plan_guids": "plan_guid",
		"organization_guids": "org_guid",
	},
	visible: "org_guid IN :orgs",
}}

// Visibility is a plan's type of visibility, one of cf.Visible….
func (t servicePlans) Visibility(tx *Tx, p *cf.ServicePlan) (kind string, err error) {
	kinds, err := t.Visibilities(tx, []*cf.ServicePlan{p})
	return kinds[p.GUID], err
}

// Visibilities are the plans' types of visibility, by GUID of the plan.
func (servicePlans) Visibilities(tx *Tx, plans []*cf.ServicePlan) (map[string]string, error) {
	var guids []string
	for _, p := range plans {
		guids = append(guids, p.GUID)
	}
	rows, err := tx.sql.QueryContext(tx.ctx, `SELECT guid, CASE WHEN public THEN '`+cf.VisiblePublic+`'
	WHEN EXISTS (SELECT 1 FROM service_brokers b JOIN service_offerings o ON o.broker_guid = b.guid WHERE o.guid = offering_guid AND b.space_guid IS NOT NULL) THEN '`+cf.VisibleSpace+`'
	WHEN EXISTS (SELECT 1 FROM service_plan_visibilities WHERE plan_guid = service_plans.guid) THEN '`+cf.VisibleOrganization+`'
	ELSE '`+cf.VisibleAdmin+`' END FROM service_plans WHERE guid`+inList, list(guids))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	kinds := map[string]string{}
	for rows.Next() {
		var guid, kind string
		if err := rows.Scan(&guid, &kind); err != nil {
			return nil, err
		}
		kinds[guid] = kind
	}
	return kinds, rows.Err()
}
