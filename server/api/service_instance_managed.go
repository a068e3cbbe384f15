package api

import (
	"encoding/json"
	"regexp"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// createManaged has a broker make a service instance.
func (c *call) createManaged(i *cf.ServiceInstance, req serviceRequest, audited doc) (*response, error) {
	if err := services.InsertManaged(c.Session, i, req.Relationships.Plan.guid()); err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobCreateInstance, "service_instances", i.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
}

// serviceJob answers with a job for which a broker will be asked.
func (c *call) serviceJob(operation, resourceType, guid string, work cf.ServiceWork) (*response, error) {
	j, err := services.NewJob(c.Session, operation, resourceType, guid, work)
	if err != nil {
		return nil, err
	}
	return c.job(j)
}

// deleteManaged has a broker delete a service instance, and what is bound to it.
func (c *call) deleteManaged(i *cf.ServiceInstance) (*response, error) {
	j, err := services.BeginDelete(c.Session, i)
	if err != nil {
		return nil, err
	}
	return c.job(j)
}

// managedChange is a request to change a managed service instance.
type managedChange struct {
	Name          change.Field[string]          `json:"name"`
	Tags          change.Field[tagList]         `json:"tags"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships *struct {
		Plan *ref `json:"service_plan"`
	} `json:"relationships"`
	Maintenance change.Field[struct {
		Version string `json:"version"`
	}] `json:"maintenance_info"`
}

func (r managedChange) Validate() []string {
	messages := control.Must(isObject(r.Parameters), "Parameters must be an object",
		r.Maintenance.V.Version == "" || semver.MatchString(r.Maintenance.V.Version), "Maintenance info version must be a Semantic Version string")
	if r.Relationships != nil {
		messages = append(messages, relationFaults(r.Relationships.Plan, "service_plan")...)
	}
	return messages
}

// semver is a version by semver.org.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// plan is the GUID of the plan that is asked for; "" for none.
func (r managedChange) plan() string {
	if r.Relationships == nil {
		return ""
	}
	return r.Relationships.Plan.guid()
}

// onlyMetadata tells whether nothing but labels and annotations are asked to change.
func (r managedChange) onlyMetadata() bool {
	return r.Metadata != nil && !r.Name.Set && !r.Tags.Set && !r.Parameters.Set && r.Relationships == nil && !r.Maintenance.Set
}

// change is what the request asks for, for the job that does it.
func (r managedChange) change(i *cf.ServiceInstance) *cf.ServiceChange {
	ch := &cf.ServiceChange{MaintenanceVersion: r.Maintenance.V.Version}
	if r.Name.Set {
		ch.Name = &r.Name.V
	}
	if r.Tags.Set {
		tags := []string(r.Tags.V)
		ch.Tags = &tags
	}
	if r.plan() != i.PlanGUID {
		ch.PlanGUID = r.plan()
	}
	if r.Metadata != nil {
		ch.Labels, ch.Annotations = r.Metadata.Labels, r.Metadata.Annotations
	}
	return ch
}

// updateManaged changes a managed service instance; the broker is asked when it
// concerns it.
func (c *call) updateManaged(i *cf.ServiceInstance) (*response, error) {
	var req managedChange
	audited, err := decodeAudited(c, &req)
	if err != nil {
		return nil, err
	}
	o, err := services.OfferOf(c.Session, i)
	if err != nil {
		return nil, err
	}
	next := *i
	if err := req.Metadata.Apply(&next.Metadata); err != nil {
		return nil, err
	}
	if err := c.mayUpdate(i, o, req); err != nil {
		return nil, err
	}
	if i.LastOperation.InProgress() && (!req.onlyMetadata() || i.LastOperation.Type == cf.OpDelete) {
		return nil, cf.Errorf(cf.ServiceBusy, "An operation for service instance %s is in progress.", i.Name)
	}
	if brokerAsked(i, o, req) {
		i.LastOperation = cf.Begin(cf.OpUpdate, cf.OpInProgress, c.Tx.Now)
		if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
			return nil, err
		}
		return c.serviceJob(cf.JobUpdateInstance, "service_instances", i.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited, Change: req.change(i)})
	}
	next.Name = req.Name.Or(next.Name)
	if req.Tags.Set {
		next.Tags = req.Tags.V
	}
	if !req.onlyMetadata() {
		next.LastOperation = services.Done(c.Session, cf.OpUpdate, "")
	}
	if err := services.Save(c.Session, &next, store.ServiceInstances.Update); err != nil {
		return nil, err
	}
	return &response{body: viewServiceInstance(c, &next)}, services.Event(c.Session, audit.ServiceInstanceUpdate, i, audited)
}

// brokerAsked tells whether a change concerns the broker.
func brokerAsked(i *cf.ServiceInstance, o services.Offer, r managedChange) bool {
	version := r.Maintenance.V.Version
	return r.Name.Set && o.Offering.AllowContextUpdates || r.Parameters.Set ||
		r.plan() != "" && r.plan() != i.PlanGUID || version != "" && version != i.MaintenanceVersion
}

// mayUpdate refuses what cannot change.
func (c *call) mayUpdate(i *cf.ServiceInstance, o services.Offer, r managedChange) error {
	if i.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return cf.Errorf(cf.ServiceNotFound, "The service instance could not be found: %s", i.Name)
	}
	for _, check := range []func(*cf.ServiceInstance, services.Offer, managedChange) error{c.mayRename, c.mayChangePlan, mayUpgrade, planAllows} {
		if err := check(i, o, r); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) mayRename(i *cf.ServiceInstance, _ services.Offer, r managedChange) error {
	if !r.Name.Set {
		return nil
	}
	renamed := *i
	renamed.Name, renamed.Tags = r.Name.V, r.Tags.V
	if err := services.Faults(&renamed); err != nil {
		return err
	}
	for _, where := range []string{"owner_space_guids", "shared_space_guids"} {
		named, _, err := store.ServiceInstances.List(c.Tx, store.Query{Where: map[string][]string{"names": {r.Name.V}, where: {i.SpaceGUID}}})
		if err != nil {
			return err
		}
		if len(control.Without(named, func(o *cf.ServiceInstance) bool { return o.GUID == i.GUID })) > 0 {
			return cf.Unprocessable("The service instance name is taken: %s", r.Name.V)
		}
	}
	if len(i.SharedSpaces) > 0 {
		return cf.Unprocessable("Service instances that have been shared cannot be renamed")
	}
	return services.NameFits(c.Session, i, r.Name.V)
}

// mayChangePlan looks at the plan that is asked for.
func (c *call) mayChangePlan(i *cf.ServiceInstance, o services.Offer, r managedChange) error {
	if r.plan() == "" {
		return nil
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	plan, err := services.PlanFor(c.Session, r.plan(), space)
	if err != nil {
		return err
	}
	if plan.OfferingGUID != o.Offering.GUID {
		return cf.Errorf(cf.InvalidRelation, "service plan relates to a different service offering")
	}
	if !o.Plan.MayChange(o.Offering) {
		return cf.Unprocessable("The service does not support changing plans.")
	}
	if err := services.PaidAllowed(c.Session, plan, space); err != nil {
		return err
	}
	n, err := store.ServiceBindings.Count(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}}})
	if err == nil && n > 0 && !plan.MayBind(o.Offering) {
		err = cf.Unprocessable("The service plan is invalid: cannot switch to non-bindable plan when service bindings exist")
	}
	return err
}

// mayUpgrade looks at the version that is asked for.
func mayUpgrade(i *cf.ServiceInstance, o services.Offer, r managedChange) error {
	version := r.Maintenance.V.Version
	switch {
	case version == "":
		return nil
	case r.plan() != "" && r.plan() != i.PlanGUID:
		return cf.Unprocessable("maintenance_info should not be changed when switching to different plan.")
	case o.Plan.MaintenanceInfo == nil:
		return cf.Unprocessable("The service broker does not support upgrades for service instances created from this plan.")
	case version != services.VersionOf(o.Plan) && version != i.MaintenanceVersion:
		return cf.Unprocessable("maintenance_info.version requested is invalid. Please ensure the catalog is up to date and you are providing a version supported by this service plan.")
	}
	return nil
}

// planAllows refuses what a plan that has left the catalog cannot do.
func planAllows(i *cf.ServiceInstance, o services.Offer, r managedChange) error {
	refuse := func(what string) error {
		return cf.Unprocessable("Cannot update %s of a service instance that belongs to inaccessible plan", what)
	}
	switch {
	case o.Plan.Active:
		return nil
	case r.Parameters.Set && !r.Parameters.Null:
		return refuse("parameters")
	case o.Offering.AllowContextUpdates && r.Name.Set && !r.Name.Null:
		return refuse("name")
	case r.Maintenance.Set && !r.Maintenance.Null && r.Maintenance.V.Version != i.MaintenanceVersion:
		return refuse("maintenance_info")
	}
	return nil
}
