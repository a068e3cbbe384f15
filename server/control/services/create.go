package services

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// NewInstance is a service instance to be made.
type NewInstance struct {
	Type          string                        `json:"type"`
	Name          change.Field[string]          `json:"name"`
	Tags          change.Field[Tags]            `json:"tags"`
	Credentials   change.Field[json.RawMessage] `json:"credentials"`
	DrainURL      change.Field[string]          `json:"syslog_drain_url"`
	RouteURL      change.Field[string]          `json:"route_service_url"`
	Parameters    change.Field[json.RawMessage] `json:"parameters"`
	Metadata      *change.Metadata              `json:"metadata"`
	Relationships struct {
		Space *change.ToOne `json:"space"`
		Plan  *change.ToOne `json:"service_plan"`
	} `json:"relationships"`
}

// Validate lists what is wrong with a request alone.
func (r NewInstance) Validate() []string {
	messages := control.Must(r.Type == cf.Managed || r.Type == cf.UserProvided, "Type must be one of 'managed', 'user-provided'",
		r.Name.V != "", "Name can't be blank")
	messages = append(messages, relationFaults(r.Relationships.Space, "space")...)
	if len(messages) > 0 {
		return messages
	}
	if r.Type == cf.UserProvided {
		messages = control.Must(!r.Parameters.Set, "Unknown field(s): 'parameters'", r.Relationships.Plan == nil, "Relationships Unknown field(s): 'service_plan'")
		return append(messages, userProvidedFaults(r.Credentials, r.DrainURL, r.RouteURL)...)
	}
	messages = control.Must(!r.Credentials.Set, "Unknown field(s): 'credentials'", !r.DrainURL.Set, "Unknown field(s): 'syslog_drain_url'",
		!r.RouteURL.Set, "Unknown field(s): 'route_service_url'", isObject(r.Parameters), "Parameters must be an object")
	return append(messages, relationFaults(r.Relationships.Plan, "service_plan")...)
}

// CreateInstance makes a service instance, a managed one by the job that is
// returned. request is how the audit event shows the request.
func CreateInstance(c *control.Session, req NewInstance, request audit.Data) (*cf.ServiceInstance, *cf.Job, error) {
	space, err := c.TargetSpace(req.Relationships.Space.GUID())
	if err != nil {
		return nil, nil, err
	}
	i := &cf.ServiceInstance{Type: req.Type, SpaceGUID: space.GUID, Name: req.Name.V, Tags: req.Tags.V}
	if err := req.Metadata.Apply(&i.Metadata); err != nil {
		return nil, nil, err
	}
	if req.Type == cf.UserProvided {
		return i, nil, createUserProvided(c, i, req, request)
	}
	if err := createManaged(c, i, space, req.Relationships.Plan.GUID()); err != nil {
		return nil, nil, err
	}
	j, err := Ask(c, cf.JobCreateInstance, instances, i.GUID, cf.ServiceWork{Parameters: objectOf(req.Parameters), Request: request})
	return i, j, err
}

func createUserProvided(c *control.Session, i *cf.ServiceInstance, req NewInstance, request audit.Data) error {
	i.Credentials = objectOf(req.Credentials)
	i.SyslogDrainURL, i.RouteServiceURL = req.DrainURL.V, req.RouteURL.V
	i.LastOperation = done(c, cf.OpCreate, operationSucceeded)
	if err := routeServiceFault(i.RouteServiceURL); err != nil {
		return err
	}
	if err := save(c, i, store.ServiceInstances.Insert); err != nil {
		return err
	}
	return instanceEvent(c, audit.UserProvidedCreate, i, request)
}

// createManaged adds a managed service instance, which a broker makes in a job.
func createManaged(c *control.Session, i *cf.ServiceInstance, space *cf.Space, planGUID string) error {
	plan, err := planFor(c, planGUID, space)
	if err != nil {
		return err
	}
	o, err := OfferFor(c, plan)
	if err != nil {
		return err
	}
	if o.Broker.Busy() {
		return cf.Unprocessable("The service instance cannot be created because there is an operation in progress for the service broker.")
	}
	if err := paidAllowed(c, plan, space); err != nil {
		return err
	}
	if err := replaceFailed(c, i); err != nil {
		return err
	}
	i.PlanGUID, i.MaintenanceVersion = plan.GUID, VersionOf(plan)
	i.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	return quota.Within(c, i.SpaceGUID, quota.Services, func() error { return save(c, i, store.ServiceInstances.Insert) })
}

// replaceFailed makes room for a service instance where one of the same name
// could not be made.
func replaceFailed(c *control.Session, i *cf.ServiceInstance) error {
	old, err := store.ServiceInstances.First(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, "owner_space_guids": {i.SpaceGUID}}})
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil || !old.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return err
	}
	if err := Abandon(c, old, ""); err != nil {
		return err
	}
	return store.ServiceInstances.Delete(c.Tx, old.GUID)
}
