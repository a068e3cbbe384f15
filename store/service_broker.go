package store

import "cupola/store/cf"

// ServiceBrokers are the service brokers. One who sees not all sees those of
// the spaces in which it works with services.
var ServiceBrokers = &Table[cf.ServiceBroker]{table{
	name: "service_brokers", singular: "Service broker", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, url, username, password, space_guid, state",
	fields: fieldsOf(func(v *cf.ServiceBroker, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Name, &v.URL, &v.Username, sealedColumn{k, &v.Password}, nullColumn{&v.SpaceGUID}, &v.State}
	}),
	resource: resourceOf(func(v *cf.ServiceBroker) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":       "service_brokers.guid",
		"names":       "name",
		"space_guids": "space_guid",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "space_guid IN :service_spaces",
}}
