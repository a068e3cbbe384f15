package cf

import "encoding/json"

// The operations of jobs for which a broker is asked. The ResourceGUID of such
// a job is that of the instance or the binding; its Input is ServiceWork.
const (
	JobCreateInstance     = "service_instance.create"
	JobUpdateInstance     = "service_instance.update"
	JobDeleteInstance     = "service_instance.delete"
	JobCreateBinding      = "service_bindings.create" // app bindings, Cloud Controller's names
	JobDeleteBinding      = "service_bindings.delete"
	JobCreateKey          = "service_keys.create"
	JobDeleteKey          = "service_keys.delete"
	JobCreateRouteBinding = "service_route_bindings.create"
	JobDeleteRouteBinding = "service_route_bindings.delete"
)

// The operations of jobs that back up and restore service instances of the built-in
// broker. Their Input is DataWork.
const (
	JobBackupInstance  = "service_instance.backup"
	JobRestoreInstance = "service_instance.restore"
)

// ServiceWork is the input of a job for which a broker is asked. It is sealed
// at rest, as every job's input is.
type ServiceWork struct {
	Actor      Actor           `json:"actor"`                // who asked, for events and the broker
	Parameters json.RawMessage `json:"parameters,omitempty"` // the user's; nil for none
	Request    map[string]any  `json:"request,omitempty"`    // the request as audit events show it
	Manifest   bool            `json:"manifest,omitempty"`   // a manifest triggers it
	Change     *ServiceChange  `json:"change,omitempty"`     // of JobUpdateInstance
}

// ServiceChange is what becomes of a managed service instance once its broker
// agreed to an update; nil is unchanged.
type ServiceChange struct {
	Name               *string            `json:"name,omitempty"`
	Tags               *[]string          `json:"tags,omitempty"`
	PlanGUID           string             `json:"plan_guid,omitempty"`           // "" unchanged
	MaintenanceVersion string             `json:"maintenance_version,omitempty"` // "" unchanged, unless the plan is
	Labels             map[string]*string `json:"labels,omitempty"`              // nil values remove
	Annotations        map[string]*string `json:"annotations,omitempty"`
}
