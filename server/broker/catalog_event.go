package broker

import (
	"bytes"
	"encoding/json"

	"cupola/server/control/audit"
	"cupola/store/cf"
)

// offered is an offering as audit events show it (CC: Service.export_attributes).
func offered(o *cf.ServiceOffering) audit.Data {
	return audit.Data{"label": o.Name, "provider": nil, "url": nil, "description": o.Description, "long_description": nil, "version": nil, "info_url": nil,
		"active": o.Active, "bindable": o.Bindable, "unique_id": o.CatalogID, "extra": textOrNil(o.BrokerMetadata), "tags": orNone(o.Tags),
		"requires": orNone(o.Requires), "documentation_url": nil, "service_broker_guid": o.BrokerGUID, "plan_updateable": o.PlanUpdateable,
		"bindings_retrievable": o.BindingsRetrievable, "instances_retrievable": o.InstancesRetrievable, "allow_context_updates": o.AllowContextUpdates}
}

// planned is a plan of an offering as audit events show it (CC: ServicePlan.export_attributes).
func planned(p *cf.ServicePlan, o *cf.ServiceOffering) audit.Data {
	d := audit.Data{"name": p.Name, "free": p.Free, "description": p.Description, "service_guid": p.OfferingGUID, "extra": textOrNil(p.BrokerMetadata),
		"unique_id": p.CatalogID, "public": p.Public, "bindable": p.MayBind(o), "plan_updateable": p.PlanUpdateable, "active": p.Active,
		"maximum_polling_duration": p.MaximumPollingDuration, "maintenance_info": nil, "create_instance_schema": textOrNil(p.Schemas.CreateInstance),
		"update_instance_schema": textOrNil(p.Schemas.UpdateInstance), "create_binding_schema": textOrNil(p.Schemas.CreateBinding)}
	if p.MaintenanceInfo != nil {
		d["maintenance_info"] = p.MaintenanceInfo
	}
	return d
}

// changed are the values of after that before has not.
func changed(before, after audit.Data) audit.Data {
	d := audit.Data{}
	for name, v := range after {
		if !bytes.Equal(jsonOf(before[name]), jsonOf(v)) {
			d[name] = v
		}
	}
	return d
}

// textOrNil is a JSON document as text, however it is laid out; nil for none.
func textOrNil(text json.RawMessage) any {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil || b.String() == "null" {
		return nil
	}
	return b.String()
}

func orNone(list []string) []string { return append([]string{}, list...) }
