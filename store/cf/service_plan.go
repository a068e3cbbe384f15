package cf

import "encoding/json"

// ServicePlan is a plan of a service offering.
type ServicePlan struct {
	Resource
	Metadata
	OfferingGUID           string
	CatalogID              string // the broker's id
	Name                   string
	Description            string
	Active                 bool // is in the catalog
	Free                   bool
	Public                 bool  // visible to everyone
	Bindable               *bool // nil: as the offering says
	PlanUpdateable         *bool // nil: as the offering says
	BindingRotatable       bool  // a binding may take over from another
	MaximumPollingDuration *int  // seconds
	MaintenanceInfo        *MaintenanceInfo
	BrokerMetadata         json.RawMessage // "metadata" of the catalog; nil for none
	Schemas                PlanSchemas
}

// MaintenanceInfo is the version of what an instance of a plan runs.
type MaintenanceInfo struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

// PlanSchemas are the JSON schemas of parameters; nil for none.
type PlanSchemas struct {
	CreateInstance, UpdateInstance, CreateBinding json.RawMessage
}

// MayBind reports whether instances of the plan, which is of the offering, can be
// bound.
func (p *ServicePlan) MayBind(o *ServiceOffering) bool { return orBool(p.Bindable, o.Bindable) }

// MayChange reports whether instances of the plan, which is of the offering, can
// change to another plan.
func (p *ServicePlan) MayChange(o *ServiceOffering) bool {
	return orBool(p.PlanUpdateable, o.PlanUpdateable)
}

func orBool(own *bool, other bool) bool {
	if own == nil {
		return other
	}
	return *own
}

// ServicePlanVisibility lets an org see a plan that is not public.
type ServicePlanVisibility struct {
	Resource
	PlanGUID string
	OrgGUID  string
}

// The types of visibility of a plan.
const (
	VisiblePublic       = "public"
	VisibleAdmin        = "admin"
	VisibleOrganization = "organization"
	VisibleSpace        = "space"
)
