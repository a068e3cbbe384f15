package cf

import "encoding/json"

// The types of a ServiceBinding.
const (
	BindingApp = "app"
	BindingKey = "key"
)

// ServiceBinding is a service credential binding: what an app or, as a key,
// something outside needs to use a service instance.
type ServiceBinding struct {
	Resource
	Metadata
	Type           string  // BindingApp or BindingKey
	Name           *string // nil: it was given none
	InstanceGUID   string
	AppGUID        string          // "" of a key
	Credentials    json.RawMessage // an object; nil until there are any; sealed at rest
	SyslogDrainURL string          // sealed at rest
	VolumeMounts   json.RawMessage // an array; nil for none; sealed at rest
	LastOperation  LastOperation
}

// RouteBinding is a service route binding: requests for the route go through
// the service.
type RouteBinding struct {
	Resource
	Metadata
	InstanceGUID    string
	RouteGUID       string
	RouteServiceURL string // sealed at rest
	LastOperation   LastOperation
}

// AppService is a binding of an app, and what it is bound to.
type AppService struct {
	Binding  *ServiceBinding
	Instance *ServiceInstance
	Plan     *ServicePlan     // nil unless the instance is managed
	Offering *ServiceOffering // likewise
}
