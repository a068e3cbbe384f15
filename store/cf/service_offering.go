package cf

import "encoding/json"

// ServiceOffering is a service of a broker's catalog.
type ServiceOffering struct {
	Resource
	Metadata
	BrokerGUID           string
	CatalogID            string // the broker's id
	Name                 string
	Description          string
	Active               bool // is in the catalog, with plans
	Bindable             bool
	PlanUpdateable       bool
	InstancesRetrievable bool
	BindingsRetrievable  bool
	AllowContextUpdates  bool
	Tags                 []string
	Requires             []string        // syslog_drain, route_forwarding, volume_mount
	BrokerMetadata       json.RawMessage // "metadata" of the catalog; nil for none
}

// The things that an offering may require leave for.
const (
	requiresSyslogDrain = "syslog_drain"
	RequiresRoutes      = "route_forwarding"
	RequiresVolumes     = "volume_mount"
)

// Needs reports whether the offering requires leave for a thing.
func (o *ServiceOffering) Needs(thing string) bool {
	for _, r := range o.Requires {
		if r == thing {
			return true
		}
	}
	return false
}

// Shareable reports whether instances may be shared with other spaces.
func (o *ServiceOffering) Shareable() bool {
	var m struct {
		Shareable any `json:"shareable"`
	}
	return json.Unmarshal(o.BrokerMetadata, &m) == nil && m.Shareable == true
}

// DocumentationURL is what the catalog names as documentation; "" for none.
func (o *ServiceOffering) DocumentationURL() string {
	var m struct {
		URL any `json:"documentationUrl"`
	}
	_ = json.Unmarshal(o.BrokerMetadata, &m) // what is not an object names none
	url, _ := m.URL.(string)
	return url
}
