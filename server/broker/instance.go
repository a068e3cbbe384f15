package broker

import (
	"context"
	"maps"

	"cupola/server/authz"
	"cupola/server/control/audit"
	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// loadInstance reads an instance and what it is of and in.
func (s *step) loadInstance(tx *store.Tx, guid string) (err error) {
	if s.instance, err = store.ServiceInstances.Get(tx, guid); err != nil {
		return err
	}
	if s.plan, err = store.ServicePlans.Get(tx, s.instance.PlanGUID); err != nil {
		return err
	}
	if s.offering, err = store.ServiceOfferings.Get(tx, s.plan.OfferingGUID); err != nil {
		return err
	}
	if s.broker, err = store.ServiceBrokers.Get(tx, s.offering.BrokerGUID); err != nil {
		return err
	}
	if s.space, err = store.Spaces.Get(tx, s.instance.SpaceGUID); err != nil {
		return err
	}
	s.org, err = store.Orgs.Get(tx, s.space.OrgGUID)
	return err
}

// named is the instance for the client.
func (s *step) named() osb.Instance {
	return osb.Instance{GUID: s.instance.GUID, OfferingID: s.offering.CatalogID, PlanID: s.plan.CatalogID, User: s.work.Actor.GUID}
}

func (s *step) context() osb.Context {
	return osb.Context{OrgGUID: s.org.GUID, OrgName: s.org.Name, OrgAnnotations: s.org.Annotations,
		SpaceGUID: s.space.GUID, SpaceName: s.space.Name, SpaceAnnotations: s.space.Annotations}
}

// instanceTask is what the tasks of instances have in common.
type instanceTask struct{ kind string }

func (t instanceTask) load(tx *store.Tx, s *step) error {
	if err := s.input(&s.work); err != nil {
		return err
	}
	if err := s.loadInstance(tx, s.job.ResourceGUID); err != nil {
		return err
	}
	if last := s.instance.LastOperation; last.Type != t.kind {
		return unable(t.kind, last.Type+" in progress")
	}
	return nil
}

func (t instanceTask) gone(s *step) fault {
	return newFault(codeNotFound, "ResourceNotFound", "The service instance could not be found: %s.", s.job.ResourceGUID)
}

func (t instanceTask) poll(ctx context.Context, l *Loop, s *step) (a answer) {
	a.state, a.err = l.Client.InstanceOperation(ctx, l.target(s, s.broker), s.named(), s.op.Operation)
	if a.err != nil || a.state.State != osb.Succeeded || t.kind == cf.OpDelete || !s.offering.InstancesRetrievable {
		return a
	}
	// Cloud Controller takes the dashboard if it can have it.
	if f, err := l.Client.FetchInstance(ctx, l.target(s, s.broker), s.named()); err == nil && f.Dashboard {
		a.provisioned = osb.Provisioned{Dashboard: true, DashboardURL: f.DashboardURL}
	}
	return a
}

// state writes how the operation on the instance stands.
func (t instanceTask) state(tx *store.Tx, s *step, state, description string) error {
	o := &s.instance.LastOperation
	o.State, o.Description, o.BrokerOperation, o.UpdatedAt = state, description, s.op.Operation, tx.Now
	return store.ServiceInstances.Update(tx, s.instance)
}

func (t instanceTask) said(tx *store.Tx, s *step, description string) error {
	return t.state(tx, s, cf.OpInProgress, description)
}

func (t instanceTask) failed(tx *store.Tx, s *step, f fault) error {
	return t.state(tx, s, cf.OpFailed, f.description)
}

func (t instanceTask) began(tx *store.Tx, s *step, a answer) error {
	s.take(a.provisioned)
	if err := t.state(tx, s, cf.OpInProgress, ""); err != nil {
		return err
	}
	return s.instanceEvent(tx, "start_"+t.kind)
}

// take keeps what the broker says of the instance.
func (s *step) take(p osb.Provisioned) {
	if p.Dashboard {
		s.instance.DashboardURL = p.DashboardURL
	}
	if p.Metadata != nil {
		s.instance.BrokerMetadata = p.Metadata
	}
}

func (s *step) instanceEvent(tx *store.Tx, verb string) error {
	target := audit.Target{Type: "service_instance", GUID: s.instance.GUID, Name: s.instance.Name, Place: authz.Place{OrgGUID: s.org.GUID, SpaceGUID: s.space.GUID}}
	return audit.Write(tx, s.work.Actor, audit.Of(target.Type, verb), target, audit.Data{"request": s.work.Request})
}

// createInstance makes an instance.
type createInstance struct{ instanceTask }

func (*createInstance) words() words {
	return words{send: "provision", poll: "create managed", timeout: "provision", creates: true}
}

func (*createInstance) send(ctx context.Context, l *Loop, s *step) (a answer) {
	where := s.context()
	where.InstanceName, where.InstanceAnnotations = s.instance.Name, s.instance.Annotations
	a.provisioned, a.err = l.Client.Provision(ctx, l.target(s, s.broker), osb.Provision{Instance: s.named(), Context: where,
		Parameters: s.work.Parameters, MaintenanceVersion: s.instance.MaintenanceVersion})
	a.async, a.operation = a.provisioned.Async, a.provisioned.Operation
	return a
}

func (t *createInstance) succeeded(tx *store.Tx, s *step, a answer) error {
	s.take(a.provisioned)
	if err := t.state(tx, s, cf.OpSucceeded, a.state.Description); err != nil {
		return err
	}
	return s.instanceEvent(tx, "create")
}

// updateInstance changes an instance.
type updateInstance struct {
	instanceTask
	next *cf.ServicePlan // that the instance shall have
}

func (*updateInstance) words() words {
	return words{send: "update", poll: "update", timeout: "update"}
}

func (t *updateInstance) load(tx *store.Tx, s *step) (err error) {
	if err := t.instanceTask.load(tx, s); err != nil {
		return err
	}
	if s.work.Change == nil {
		s.work.Change = &cf.ServiceChange{}
	}
	t.next = s.plan
	if guid := s.work.Change.PlanGUID; guid != "" && guid != s.plan.GUID {
		t.next, err = store.ServicePlans.Get(tx, guid)
	}
	return err
}

// version is what the instance shall run; "" for what it does.
func (t *updateInstance) version(s *step) string {
	if t.next.GUID == s.plan.GUID {
		return s.work.Change.MaintenanceVersion
	}
	if t.next.MaintenanceInfo == nil {
		return ""
	}
	return t.next.MaintenanceInfo.Version
}

func (t *updateInstance) send(ctx context.Context, l *Loop, s *step) (a answer) {
	u := osb.Change{Instance: s.named(), Context: s.context(), Parameters: s.work.Parameters, MaintenanceVersion: t.version(s),
		PreviousPlanID: s.plan.CatalogID, PreviousMaintenanceInfo: s.instance.MaintenanceVersion}
	u.PlanID = t.next.CatalogID
	u.Context.InstanceName = s.instance.Name
	if name := s.work.Change.Name; name != nil {
		u.Context.InstanceName = *name
	}
	if u.Parameters == nil {
		u.Parameters = []byte("{}") // as Cloud Controller sends it
	}
	a.provisioned, a.err = l.Client.Update(ctx, l.target(s, s.broker), u)
	a.async, a.operation = a.provisioned.Async, a.provisioned.Operation
	return a
}

func (t *updateInstance) succeeded(tx *store.Tx, s *step, a answer) error {
	i, c := s.instance, s.work.Change
	before := *i
	if c.Name != nil {
		i.Name = *c.Name
	}
	if c.Tags != nil {
		i.Tags = *c.Tags
	}
	if version := t.version(s); version != "" || t.next.GUID != s.plan.GUID {
		i.MaintenanceVersion = version
	}
	i.PlanGUID = t.next.GUID
	i.Labels, i.Annotations = patched(i.Labels, c.Labels), patched(i.Annotations, c.Annotations)
	s.take(a.provisioned)
	err := t.state(tx, s, cf.OpSucceeded, a.state.Description)
	if store.IsTaken(err) {
		*i = before
		return unable("update", "The service instance name is taken: "+*c.Name)
	}
	if err != nil {
		return err
	}
	return s.instanceEvent(tx, "update")
}

// patched is m with the keys that have a value set, and those without removed.
func patched(m map[string]string, p map[string]*string) map[string]string {
	if len(p) == 0 {
		return m
	}
	out := map[string]string{}
	maps.Copy(out, m)
	for k, v := range p {
		delete(out, k)
		if v != nil {
			out[k] = *v
		}
	}
	return out
}
