package store

import "cupola/store/cf"

// ServiceOfferings are the services of the brokers' catalogs. One sees those
// that have a plan one sees.
var ServiceOfferings = &Table[cf.ServiceOffering]{table{
	name: "service_offerings", singular: "Service offering", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, broker_guid, catalog_id, name, description, active, bindable, plan_updateable, " +
		"instances_retrievable, bindings_retrievable, allow_context_updates, tags, requires, broker_metadata",
	fields: fieldsOf(func(v *cf.ServiceOffering, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.BrokerGUID, &v.CatalogID, &v.Name, &v.Description, &v.Active, &v.Bindable, &v.PlanUpdateable,
			&v.InstancesRetrievable, &v.BindingsRetrievable, &v.AllowContextUpdates,
			jsonColumn{&v.Tags}, jsonColumn{&v.Requires}, textColumn{&v.BrokerMetadata}}
	}),
	resource: resourceOf(func(v *cf.ServiceOffering) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":                "service_offerings.guid",
		"names":                "service_offerings.name",
		"available":            "active IN (SELECT value = 'true' FROM json_each(?))",
		"broker_catalog_ids":   "catalog_id",
		"service_broker_guids": "broker_guid",
		"service_broker_names": "broker_guid IN (SELECT guid FROM service_brokers WHERE name IN (SELECT value FROM json_each(?)))",
		"organization_guids":   plansOfOffering + planInOrgs + ")",
		"space_guids":          plansOfOffering + planInSpaces + ")",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "service_offerings.name"},
	visible: plansOfOffering + planVisible + ") OR broker_guid IN " + brokersOfMembers,
}}

const plansOfOffering = "EXISTS (SELECT 1 FROM service_plans WHERE offering_guid = service_offerings.guid AND "
