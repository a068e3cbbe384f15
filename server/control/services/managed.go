package services

import (
	"encoding/json"

	"cupola/runtime/pattern"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// ManagedChange changes a managed service instance.
type ManagedChange struct {
	Name          change.Field[string]          `json:"name"`
	Tags          change.Field[Tags]            `json:"tags"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships *struct {
		Plan *change.ToOne `json:"service_plan"`
	} `json:"relationships"`
	Maintenance change.Field[struct {
		Version string `json:"version"`
	}] `json:"maintenance_info"`
}

// Validate lists what is wrong with a request alone.
func (r ManagedChange) Validate() []string {
	messages := control.Must(isObject(r.Parameters), "Parameters must be an object",
		r.version() == "" || semver().MatchString(r.version()), "Maintenance info version must be a Semantic Version string")
	if r.Relationships != nil {
		messages = append(messages, relationFaults(r.Relationships.Plan, "service_plan")...)
	}
	return messages
}

// semver is a version by semver.org.
var semver = pattern.Lazy(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// IsVersion reports whether a text is a version.
func IsVersion(text string) bool { return semver().MatchString(text) }

// version is the maintenance version that is asked for; "" for none.
func (r ManagedChange) version() string { return r.Maintenance.V.Version }

// plan is the GUID of the plan that is asked for; "" for none.
func (r ManagedChange) plan() string {
	if r.Relationships == nil {
		return ""
	}
	return r.Relationships.Plan.GUID()
}

// onlyMetadata reports whether nothing but labels and annotations are asked to change.
func (r ManagedChange) onlyMetadata() bool {
	return r.Metadata != nil && !r.Name.Set && !r.Tags.Set && !r.Parameters.Set && r.Relationships == nil && !r.Maintenance.Set
}

// concerns reports whether a change concerns the broker.
func (r ManagedChange) concerns(i *cf.ServiceInstance, o Offer) bool {
	return r.Name.Set && o.Offering.AllowContextUpdates || r.Parameters.Set ||
		r.plan() != "" && r.plan() != i.PlanGUID || r.version() != "" && r.version() != i.MaintenanceVersion
}

// work is what the request asks for, for the job that does it.
func (r ManagedChange) work(i *cf.ServiceInstance, request audit.Data) cf.ServiceWork {
	ch := &cf.ServiceChange{MaintenanceVersion: r.version()}
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
	return cf.ServiceWork{Parameters: objectOf(r.Parameters), Request: request, Change: ch}
}

// apply changes what the request names and needs no broker.
func (r ManagedChange) apply(i *cf.ServiceInstance) error {
	i.Name = r.Name.Or(i.Name)
	if r.Tags.Set {
		i.Tags = r.Tags.V
	}
	return r.Metadata.Apply(&i.Metadata)
}

// UpdateManaged changes a managed service instance, by the job that is returned
// where the change concerns the broker.
func UpdateManaged(c *control.Session, i *cf.ServiceInstance, req ManagedChange, request audit.Data) (*cf.Job, error) {
	o, err := offerOf(c, i)
	if err != nil {
		return nil, err
	}
	before := *i
	if err := req.apply(i); err != nil {
		return nil, err
	}
	if err := mayUpdate(c, &before, o, req); err != nil {
		return nil, err
	}
	if req.concerns(&before, o) {
		return askInstance(c, &before, cf.OpUpdate, cf.JobUpdateInstance, req.work(&before, request))
	}
	if !req.onlyMetadata() {
		i.LastOperation = done(c, cf.OpUpdate, "")
	}
	if err := save(c, i, store.ServiceInstances.Update); err != nil {
		return nil, err
	}
	return nil, instanceEvent(c, audit.ServiceInstanceUpdate, &before, request)
}

// mayUpdate refuses what cannot change, or not now.
func mayUpdate(c *control.Session, i *cf.ServiceInstance, o Offer, r ManagedChange) error {
	if i.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return notFound(i)
	}
	for _, check := range []func(*control.Session, *cf.ServiceInstance, Offer, ManagedChange) error{mayRename, mayChangePlan, mayUpgrade, planAllows} {
		if err := check(c, i, o, r); err != nil {
			return err
		}
	}
	if i.LastOperation.InProgress() && (!r.onlyMetadata() || i.LastOperation.Type == cf.OpDelete) {
		return inProgress(i)
	}
	return nil
}

func mayRename(c *control.Session, i *cf.ServiceInstance, _ Offer, r ManagedChange) error {
	if !r.Name.Set {
		return nil
	}
	renamed := *i
	renamed.Name, renamed.Tags = r.Name.V, r.Tags.V
	if err := faults(&renamed); err != nil {
		return err
	}
	for _, where := range []string{"owner_space_guids", "shared_space_guids"} {
		taken, err := otherNamed(c, &renamed, where)
		if err != nil {
			return err
		}
		if taken {
			return cf.Unprocessable("The service instance name is taken: %s", r.Name.V)
		}
	}
	if len(i.SharedSpaces) > 0 {
		return cf.Unprocessable("Service instances that have been shared cannot be renamed")
	}
	return nameFits(c, i, r.Name.V)
}

// mayChangePlan looks at the plan that is asked for.
func mayChangePlan(c *control.Session, i *cf.ServiceInstance, o Offer, r ManagedChange) error {
	if r.plan() == "" {
		return nil
	}
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	plan, err := planFor(c, r.plan(), space)
	if err != nil {
		return err
	}
	if plan.OfferingGUID != o.Offering.GUID {
		return cf.Errorf(cf.InvalidRelation, "service plan relates to a different service offering")
	}
	if !o.Plan.MayChange(o.Offering) {
		return cf.Unprocessable("The service does not support changing plans.")
	}
	if err := paidAllowed(c, plan, space); err != nil {
		return err
	}
	n, err := store.ServiceBindings.Count(c.Tx, store.Query{Where: boundApps(i)})
	if err == nil && n > 0 && !plan.MayBind(o.Offering) {
		err = cf.Unprocessable("The service plan is invalid: cannot switch to non-bindable plan when service bindings exist")
	}
	return err
}

// mayUpgrade looks at the version that is asked for.
func mayUpgrade(_ *control.Session, i *cf.ServiceInstance, o Offer, r ManagedChange) error {
	switch version := r.version(); {
	case version == "":
		return nil
	case r.plan() != "" && r.plan() != i.PlanGUID:
		return cf.Unprocessable("maintenance_info should not be changed when switching to different plan.")
	case o.Plan.MaintenanceInfo == nil:
		return cf.Unprocessable("The service broker does not support upgrades for service instances created from this plan.")
	case version != VersionOf(o.Plan) && version != i.MaintenanceVersion:
		return cf.Unprocessable("maintenance_info.version requested is invalid. Please ensure the catalog is up to date and you are providing a version supported by this service plan.")
	}
	return nil
}

// planAllows refuses what a plan that has left the catalog cannot do.
func planAllows(_ *control.Session, i *cf.ServiceInstance, o Offer, r ManagedChange) error {
	what := ""
	switch {
	case o.Plan.Active:
	case r.Parameters.Set && !r.Parameters.Null:
		what = "parameters"
	case o.Offering.AllowContextUpdates && r.Name.Set && !r.Name.Null:
		what = "name"
	case r.Maintenance.Set && !r.Maintenance.Null && r.version() != i.MaintenanceVersion:
		what = "maintenance_info"
	}
	if what == "" {
		return nil
	}
	return cf.Unprocessable("Cannot update %s of a service instance that belongs to inaccessible plan", what)
}
