package api

import (
	"encoding/json"
	"regexp"
	"slices"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// offer is what a managed service instance is an instance of.
type offer struct {
	plan     *cf.ServicePlan
	offering *cf.ServiceOffering
	broker   *cf.ServiceBroker
}

func (c *call) offerOf(i *cf.ServiceInstance) (o offer, err error) {
	if o.plan, err = store.ServicePlans.Get(c.Tx, i.PlanGUID); err != nil {
		return o, err
	}
	return c.offer(o.plan)
}

func (c *call) offer(plan *cf.ServicePlan) (o offer, err error) {
	o.plan = plan
	if o.offering, err = store.ServiceOfferings.Get(c.Tx, plan.OfferingGUID); err != nil {
		return o, err
	}
	o.broker, err = store.ServiceBrokers.Get(c.Tx, o.offering.BrokerGUID)
	return o, err
}

// planFor is a plan that a request names for an instance in a space.
func (c *call) planFor(guid string, space *cf.Space) (*cf.ServicePlan, error) {
	plan, err := store.ServicePlans.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "Invalid service plan. Ensure that the service plan exists, is available, and you have access to it.")
	}
	if !plan.Active {
		return nil, cf.Unprocessable("Invalid service plan. The service plan '%s' with guid '%s' has been removed from the service broker's catalog. "+
			"It is not possible to create new service instances using this plan.", plan.Name, plan.GUID)
	}
	seen, err := c.planSeenIn(plan, space)
	if err == nil && !seen {
		err = cf.Unprocessable("Invalid service plan. This could be due to a space-scoped broker which is offering the service plan '%s' with guid '%s' in another space "+
			"or that the plan is not enabled in this organization. Ensure that the service plan is visible in your current space '%s' with guid '%s'.",
			plan.Name, plan.GUID, space.Name, space.GUID)
	}
	return plan, err
}

func (c *call) planSeenIn(plan *cf.ServicePlan, space *cf.Space) (bool, error) {
	n, err := store.ServicePlans.Count(c.Tx, store.Query{Where: map[string][]string{"guids": {plan.GUID}, "space_guids": {space.GUID}}})
	return n > 0, err
}

// createManaged has a broker make a service instance.
func (c *call) createManaged(i *cf.ServiceInstance, req serviceRequest, audited doc) (*response, error) {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return nil, err
	}
	plan, err := c.planFor(req.Relationships.Plan.guid(), space)
	if err != nil {
		return nil, err
	}
	o, err := c.offer(plan)
	if err != nil {
		return nil, err
	}
	if o.broker.Busy() {
		return nil, cf.Unprocessable("The service instance cannot be created because there is an operation in progress for the service broker.")
	}
	if err := c.paidAllowed(plan, space); err != nil {
		return nil, err
	}
	if err := c.replaceFailed(i); err != nil {
		return nil, err
	}
	i.PlanGUID, i.MaintenanceVersion = plan.GUID, versionOf(plan)
	i.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	err = quota.Within(c.Tx, i.SpaceGUID, quota.Services, func() error { return c.saveServiceInstance(i, store.ServiceInstances.Insert) })
	if err != nil {
		return nil, err
	}
	return c.serviceJob(cf.JobCreateInstance, "service_instances", i.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: audited})
}

// paidAllowed refuses a plan that costs where the quota of the space or of its
// org does.
func (c *call) paidAllowed(plan *cf.ServicePlan, space *cf.Space) error {
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil || plan.Free {
		return err
	}
	list, err := quota.Budgets(c.Tx, org, space)
	for _, b := range slices.Backward(list) {
		switch {
		case b.Limits.PaidServices:
		case b.OfSpace():
			return cf.Unprocessable("The service instance cannot be created because paid service plans are not allowed for your space.")
		default:
			return cf.Unprocessable("The service instance cannot be created because paid service plans are not allowed.")
		}
	}
	return err
}

// replaceFailed makes room for a service instance where one of the same name
// could not be made.
func (c *call) replaceFailed(i *cf.ServiceInstance) error {
	old, err := store.ServiceInstances.First(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, "owner_space_guids": {i.SpaceGUID}}})
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil || !old.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return err
	}
	if err := c.abandon(old, ""); err != nil {
		return err
	}
	return store.ServiceInstances.Delete(c.Tx, old.GUID)
}

// abandon has the broker forget an instance, or a binding of it, that it may
// have made though it was told to the platform as failed.
func (c *call) abandon(i *cf.ServiceInstance, binding string) error {
	o, err := c.offerOf(i)
	if err != nil {
		return err
	}
	return store.BrokerOperations.Insert(c.Tx, &cf.BrokerOperation{Phase: cf.PhaseSend, DueAt: c.Tx.Now, Orphan: &cf.Orphan{BrokerGUID: o.broker.GUID,
		OfferingID: o.offering.CatalogID, PlanID: o.plan.CatalogID, InstanceGUID: i.GUID, BindingGUID: binding}})
}

// serviceJob answers with a job for which a broker will be asked.
func (c *call) serviceJob(operation, resourceType, guid string, work cf.ServiceWork) (*response, error) {
	j, err := c.newServiceJob(operation, resourceType, guid, work)
	if err != nil {
		return nil, err
	}
	return c.job(j)
}

func (c *call) newServiceJob(operation, resourceType, guid string, work cf.ServiceWork) (*cf.Job, error) {
	work.Actor = c.Who()
	input, err := json.Marshal(work)
	return &cf.Job{Operation: operation, ResourceType: resourceType, ResourceGUID: guid, State: cf.JobProcessing, Input: string(input)}, err
}

// deleteManaged has a broker delete a service instance, and what is bound to it.
func (c *call) deleteManaged(i *cf.ServiceInstance) (*response, error) {
	j, err := c.beginDelete(i)
	if err != nil {
		return nil, err
	}
	return c.job(j)
}

// beginDelete gives the job that has a broker delete a service instance.
func (c *call) beginDelete(i *cf.ServiceInstance) (*cf.Job, error) {
	i.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return nil, err
	}
	return c.newServiceJob(cf.JobDeleteInstance, "service_instances", i.GUID, cf.ServiceWork{})
}

// managedChange is a request to change a managed service instance.
type managedChange struct {
	Name          opt[string]          `json:"name"`
	Tags          opt[tagList]         `json:"tags"`
	Parameters    opt[json.RawMessage] `json:"parameters"`
	Metadata      *metadataPatch       `json:"metadata"`
	Relationships *struct {
		Plan *ref `json:"service_plan"`
	} `json:"relationships"`
	Maintenance opt[struct {
		Version string `json:"version"`
	}] `json:"maintenance_info"`
}

func (r managedChange) validate() []string {
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
	o, err := c.offerOf(i)
	if err != nil {
		return nil, err
	}
	next := *i
	if err := req.Metadata.apply(&next.Metadata); err != nil {
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
	next.Name = req.Name.or(next.Name)
	if req.Tags.Set {
		next.Tags = req.Tags.V
	}
	if !req.onlyMetadata() {
		next.LastOperation = c.done(cf.OpUpdate, "")
	}
	if err := c.saveServiceInstance(&next, store.ServiceInstances.Update); err != nil {
		return nil, err
	}
	return &response{body: viewServiceInstance(c, &next)}, c.serviceEvent(audit.ServiceInstanceUpdate, i, audited)
}

// brokerAsked tells whether a change concerns the broker.
func brokerAsked(i *cf.ServiceInstance, o offer, r managedChange) bool {
	version := r.Maintenance.V.Version
	return r.Name.Set && o.offering.AllowContextUpdates || r.Parameters.Set ||
		r.plan() != "" && r.plan() != i.PlanGUID || version != "" && version != i.MaintenanceVersion
}

// mayUpdate refuses what cannot change.
func (c *call) mayUpdate(i *cf.ServiceInstance, o offer, r managedChange) error {
	if i.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return cf.Errorf(cf.ServiceNotFound, "The service instance could not be found: %s", i.Name)
	}
	for _, check := range []func(*cf.ServiceInstance, offer, managedChange) error{c.mayRename, c.mayChangePlan, mayUpgrade, planAllows} {
		if err := check(i, o, r); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) mayRename(i *cf.ServiceInstance, _ offer, r managedChange) error {
	if !r.Name.Set {
		return nil
	}
	renamed := *i
	renamed.Name, renamed.Tags = r.Name.V, r.Tags.V
	if err := serviceFaults(&renamed); err != nil {
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
	return c.nameFits(i, r.Name.V)
}

// mayChangePlan looks at the plan that is asked for.
func (c *call) mayChangePlan(i *cf.ServiceInstance, o offer, r managedChange) error {
	if r.plan() == "" {
		return nil
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	plan, err := c.planFor(r.plan(), space)
	if err != nil {
		return err
	}
	if plan.OfferingGUID != o.offering.GUID {
		return cf.Errorf(cf.InvalidRelation, "service plan relates to a different service offering")
	}
	if !o.plan.MayChange(o.offering) {
		return cf.Unprocessable("The service does not support changing plans.")
	}
	if err := c.paidAllowed(plan, space); err != nil {
		return err
	}
	n, err := store.ServiceBindings.Count(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "type": {cf.BindingApp}}})
	if err == nil && n > 0 && !plan.MayBind(o.offering) {
		err = cf.Unprocessable("The service plan is invalid: cannot switch to non-bindable plan when service bindings exist")
	}
	return err
}

// mayUpgrade looks at the version that is asked for.
func mayUpgrade(i *cf.ServiceInstance, o offer, r managedChange) error {
	version := r.Maintenance.V.Version
	switch {
	case version == "":
		return nil
	case r.plan() != "" && r.plan() != i.PlanGUID:
		return cf.Unprocessable("maintenance_info should not be changed when switching to different plan.")
	case o.plan.MaintenanceInfo == nil:
		return cf.Unprocessable("The service broker does not support upgrades for service instances created from this plan.")
	case version != versionOf(o.plan) && version != i.MaintenanceVersion:
		return cf.Unprocessable("maintenance_info.version requested is invalid. Please ensure the catalog is up to date and you are providing a version supported by this service plan.")
	}
	return nil
}

// planAllows refuses what a plan that has left the catalog cannot do.
func planAllows(i *cf.ServiceInstance, o offer, r managedChange) error {
	refuse := func(what string) error {
		return cf.Unprocessable("Cannot update %s of a service instance that belongs to inaccessible plan", what)
	}
	switch {
	case o.plan.Active:
		return nil
	case r.Parameters.Set && !r.Parameters.Null:
		return refuse("parameters")
	case o.offering.AllowContextUpdates && r.Name.Set && !r.Name.Null:
		return refuse("name")
	case r.Maintenance.Set && !r.Maintenance.Null && r.Maintenance.V.Version != i.MaintenanceVersion:
		return refuse("maintenance_info")
	}
	return nil
}
