package broker

import (
	"context"
	"fmt"

	"cupola/server/authz"
	"cupola/server/bindings"
	"cupola/server/control/audit"
	"cupola/server/desire"
	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// bindingTask is what the tasks of bindings have in common. Of credentials and
// route, one is set.
type bindingTask struct {
	kind        string // cf.OpCreate or cf.OpDelete
	ofRoute     bool
	credentials *cf.ServiceBinding
	route       *cf.RouteBinding

	app      *cf.App   // that is bound; nil for a key and a route
	appSpace *cf.Space // where it is
	takes    string    // GUID of the binding that the new one takes over from
	uri      string    // of the route
}

func (t *bindingTask) load(tx *store.Tx, s *step) (err error) {
	if err := s.input(&s.work); err != nil {
		return err
	}
	if t.ofRoute {
		err = t.loadRoute(tx, s)
	} else {
		err = t.loadApp(tx, s)
	}
	if err != nil {
		return err
	}
	if last := t.last(); last.Type != t.kind {
		return unable(t.kind, last.Type+" in progress")
	}
	return nil
}

func (t *bindingTask) loadApp(tx *store.Tx, s *step) (err error) {
	if t.credentials, err = store.ServiceBindings.Get(tx, s.job.ResourceGUID); err != nil {
		return err
	}
	if err := s.loadInstance(tx, t.credentials.InstanceGUID); err != nil || t.credentials.AppGUID == "" {
		return err
	}
	if t.app, err = store.Apps.Get(tx, t.credentials.AppGUID); err != nil {
		return err
	}
	if t.appSpace, err = store.Spaces.Get(tx, t.app.SpaceGUID); err != nil || t.kind != cf.OpCreate || !s.plan.BindingRotatable {
		return err
	}
	return t.loadPredecessor(tx)
}

// loadPredecessor finds the newest binding that the app has to the same
// instance: where the plan allows it, a further one takes over from it.
func (t *bindingTask) loadPredecessor(tx *store.Tx) error {
	have, err := store.ServiceBindings.Where(tx, map[string][]string{
		"service_instance_guids": {t.credentials.InstanceGUID}, "app_guids": {t.credentials.AppGUID}})
	for _, b := range have {
		if b.GUID != t.credentials.GUID && b.LastOperation.Is(cf.OpCreate, cf.OpSucceeded) {
			t.takes = b.GUID
		}
	}
	return err
}

func (t *bindingTask) loadRoute(tx *store.Tx, s *step) (err error) {
	if t.route, err = store.RouteBindings.Get(tx, s.job.ResourceGUID); err != nil {
		return err
	}
	if err := s.loadInstance(tx, t.route.InstanceGUID); err != nil {
		return err
	}
	r, err := store.Routes.Get(tx, t.route.RouteGUID)
	if err != nil {
		return err
	}
	d, err := store.Domains.Get(tx, r.DomainGUID)
	if err != nil {
		return err
	}
	t.uri = d.Name + r.Path
	if r.Host != "" {
		t.uri = r.Host + "." + t.uri
	}
	return nil
}

func (t *bindingTask) bindingGUID() string {
	if t.ofRoute {
		return t.route.GUID
	}
	return t.credentials.GUID
}

func (t *bindingTask) last() *cf.LastOperation {
	if t.ofRoute {
		return &t.route.LastOperation
	}
	return &t.credentials.LastOperation
}

func (t *bindingTask) named(s *step) osb.Binding {
	return osb.Binding{Instance: s.named(), GUID: t.bindingGUID()}
}

func (t *bindingTask) gone(s *step) fault {
	return newFault(codeNotFound, "ResourceNotFound", "The binding could not be found: %s", s.job.ResourceGUID)
}

// state writes how the operation on the binding stands.
func (t *bindingTask) state(tx *store.Tx, s *step, state, description string) error {
	o := t.last()
	o.State, o.Description, o.BrokerOperation, o.UpdatedAt = state, description, s.op.Operation, tx.Now
	if t.ofRoute {
		return store.RouteBindings.Update(tx, t.route)
	}
	return store.ServiceBindings.Update(tx, t.credentials)
}

func (t *bindingTask) said(tx *store.Tx, s *step, description string) error {
	return t.state(tx, s, cf.OpInProgress, description)
}

func (t *bindingTask) failed(tx *store.Tx, s *step, f fault) error {
	return t.state(tx, s, cf.OpFailed, f.description)
}

func (t *bindingTask) began(tx *store.Tx, s *step, _ answer) error {
	if err := t.state(tx, s, cf.OpInProgress, ""); err != nil {
		return err
	}
	return t.event(tx, s, "start_"+t.kind)
}

// event records what became of the binding, in the space of its app if it has
// one.
func (t *bindingTask) event(tx *store.Tx, s *step, verb string) error {
	target := audit.Target{Type: "service_route_binding", GUID: t.bindingGUID(), Place: authz.Place{OrgGUID: s.org.GUID, SpaceGUID: s.space.GUID}}
	request := map[string]any{"service_instance_guid": s.instance.GUID, "app_guid": nil, "route_guid": nil}
	switch {
	case t.ofRoute:
		request["route_guid"] = t.route.RouteGUID
	case t.app != nil:
		target.Type, target.Place = "service_binding", authz.Place{OrgGUID: t.appSpace.OrgGUID, SpaceGUID: t.appSpace.GUID}
		request["app_guid"] = t.app.GUID
	default:
		target.Type = "service_key"
	}
	if !t.ofRoute && t.credentials.Name != nil {
		target.Name = *t.credentials.Name
	}
	if t.kind == cf.OpCreate {
		request = s.work.Request
	}
	data := audit.Data{"request": request}
	if s.work.Manifest {
		data["manifest_triggered"] = true
	}
	return audit.Write(tx, s.work.Actor, audit.Of(target.Type, verb), target, data)
}

// createBinding makes a binding.
type createBinding struct{ *bindingTask }

func (createBinding) words() words {
	return words{send: "bind", poll: "create", timeout: "bind", creates: true}
}

func (t createBinding) send(ctx context.Context, l *Loop, s *step) (a answer) {
	r := osb.Bind{Binding: t.named(s), Context: s.context(), Parameters: s.work.Parameters, Route: t.uri, Predecessor: t.takes, Requires: s.offering.Requires}
	if t.app != nil {
		r.AppGUID, r.AppSpaceGUID, r.AppAnnotations = t.app.GUID, t.app.SpaceGUID, t.app.Annotations
	}
	a.bound, a.err = l.Client.Bind(ctx, l.target(s, s.broker), r)
	a.async, a.operation = a.bound.Async, a.bound.Operation
	if a.err == nil && a.async && !s.offering.BindingsRetrievable {
		const why = "The broker responded asynchronously but does not support fetching binding data"
		f := newFault(codeBindingInvalid, "ServiceBindingInvalid", "The service binding is invalid: %s", why)
		f.description = why
		a.err, a.unsure = f, true
	}
	return a
}

func (t createBinding) poll(ctx context.Context, l *Loop, s *step) (a answer) {
	a.state, a.err = l.Client.BindingOperation(ctx, l.target(s, s.broker), t.named(s), s.op.Operation)
	if a.err != nil || a.state.State != osb.Succeeded {
		return a
	}
	f, err := l.Client.FetchBinding(ctx, l.target(s, s.broker), t.named(s), s.offering.Requires)
	if err != nil {
		a.err, a.unsure = fetchError{err}, true
	}
	a.bound = f.Bound
	return a
}

func (t createBinding) succeeded(tx *store.Tx, s *step, a answer) error {
	if t.ofRoute {
		t.route.RouteServiceURL = a.bound.RouteServiceURL
	} else {
		t.credentials.Credentials = a.bound.Credentials
		if t.app != nil {
			t.credentials.SyslogDrainURL, t.credentials.VolumeMounts = a.bound.SyslogDrainURL, a.bound.VolumeMounts
		}
	}
	if err := t.state(tx, s, cf.OpSucceeded, a.state.Description); err != nil {
		return err
	}
	if err := t.fits(tx, s); err != nil {
		return err
	}
	return t.event(tx, s, "create")
}

// fits refuses a binding with which its app could not be started: credentials
// are known only now. The platform keeps none of it, and the broker is asked to
// delete it again.
func (t createBinding) fits(tx *store.Tx, s *step) error {
	if t.app == nil {
		return nil
	}
	all, err := store.ServiceBindings.OfApps(tx, t.app.GUID)
	if err != nil {
		return err
	}
	err = bindings.Fit(bindings.Form(t.app.BindingForm), desire.Bindings(all[t.app.GUID]), "app")
	if err == nil {
		return nil
	}
	t.credentials.Credentials, t.credentials.SyslogDrainURL, t.credentials.VolumeMounts = nil, "", nil
	verb := t.words().send
	if s.op.Phase == cf.PhasePoll {
		verb = t.words().poll
	}
	return unable(verb, err.Error())
}

// deleteBinding deletes a binding.
type deleteBinding struct{ *bindingTask }

func (deleteBinding) words() words {
	return words{send: "unbind", poll: "delete", timeout: "unbind", deletes: true}
}

func (t deleteBinding) send(ctx context.Context, l *Loop, s *step) answer {
	d, err := l.Client.Unbind(ctx, l.target(s, s.broker), t.named(s))
	switch {
	case osb.Is(err, osb.Concurrency):
		err = unable("unbind", "The service broker rejected the request due to an operation being in progress for the service binding.")
	case err != nil:
		err = unable("unbind", fmt.Sprintf("Service broker failed to delete service binding for instance %s: %s", s.instance.Name, err))
	}
	return answer{err: err, async: d.Async, operation: d.Operation}
}

func (t deleteBinding) poll(ctx context.Context, l *Loop, s *step) (a answer) {
	a.state, a.err = l.Client.BindingOperation(ctx, l.target(s, s.broker), t.named(s), s.op.Operation)
	return a
}

func (t deleteBinding) succeeded(tx *store.Tx, s *step, _ answer) error {
	if err := t.remove(tx); err != nil {
		return err
	}
	return t.event(tx, s, "delete")
}

func (t *bindingTask) remove(tx *store.Tx) error {
	if t.ofRoute {
		return store.RouteBindings.Delete(tx, t.route.GUID)
	}
	return store.ServiceBindings.Delete(tx, t.credentials.GUID)
}
