package broker

import (
	"context"
	"encoding/json"
	"fmt"

	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// deleteInstance deletes an instance, and before it all that is bound to it.
type deleteInstance struct {
	instanceTask
	bound []bound
}

// bound is a binding of an instance that is being deleted.
type bound struct {
	operation string // of the job that deletes it
	kind      string // of resource
	guid      string
	last      *cf.LastOperation
	save      func(*store.Tx) error
}

func (*deleteInstance) words() words {
	return words{send: "delete", poll: "delete", timeout: "deprovision", deletes: true}
}

func (t *deleteInstance) load(tx *store.Tx, s *step) error {
	if err := t.instanceTask.load(tx, s); err != nil {
		return err
	}
	bindings, err := store.ServiceBindings.By(tx, "service_instance_guids", s.instance.GUID)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		operation := cf.JobDeleteBinding
		if b.Type == cf.BindingKey {
			operation = cf.JobDeleteKey
		}
		t.bound = append(t.bound, bound{operation, "service_credential_binding", b.GUID, &b.LastOperation, func(tx *store.Tx) error { return store.ServiceBindings.Update(tx, b) }})
	}
	routes, err := store.RouteBindings.By(tx, "service_instance_guids", s.instance.GUID)
	for _, b := range routes {
		t.bound = append(t.bound, bound{cf.JobDeleteRouteBinding, "service_route_binding", b.GUID, &b.LastOperation, func(tx *store.Tx) error { return store.RouteBindings.Update(tx, b) }})
	}
	return err
}

func (t *deleteInstance) send(ctx context.Context, l *Loop, s *step) (a answer) {
	if len(t.bound) > 0 {
		return answer{wait: true}
	}
	d, err := l.Client.Deprovision(ctx, l.target(s, s.broker), s.named())
	switch {
	case osb.Is(err, osb.Concurrency):
		err = newFault(codeInstanceBusy, "AsyncServiceInstanceOperationInProgress", "An operation for service instance %s is in progress.", s.instance.Name)
	case err != nil:
		err = unable("delete", fmt.Sprintf("Service instance %s: %s", s.instance.Name, err))
	}
	return answer{err: err, async: d.Async, operation: d.Operation}
}

// waits adds jobs that delete the instance's bindings first. The deletion fails if a
// binding could not be deleted since it began.
func (t *deleteInstance) waits(tx *store.Tx, s *step) error {
	for _, b := range t.bound {
		if b.last.Is(cf.OpDelete, cf.OpFailed) && !b.last.UpdatedAt.Before(s.instance.LastOperation.CreatedAt) {
			return unable("delete", b.last.Description)
		}
	}
	for _, b := range t.bound {
		if b.last.Is(cf.OpDelete, cf.OpInitial, cf.OpInProgress) {
			continue
		}
		if err := b.delete(tx, s.work.Actor); err != nil {
			return err
		}
	}
	return nil
}

// delete adds a job that deletes a binding.
func (b bound) delete(tx *store.Tx, actor cf.Actor) error {
	input, err := json.Marshal(cf.ServiceWork{Actor: actor})
	if err != nil {
		return err
	}
	*b.last = cf.Begin(cf.OpDelete, cf.OpInProgress, tx.Now)
	if err := b.save(tx); err != nil {
		return err
	}
	return store.Jobs.Insert(tx, &cf.Job{Operation: b.operation, ResourceGUID: b.guid, ResourceType: b.kind, State: cf.JobProcessing, Input: string(input)})
}

func (t *deleteInstance) succeeded(tx *store.Tx, s *step, _ answer) error {
	if len(t.bound) > 0 {
		return unable("delete", "there are bindings to service instance "+s.instance.Name)
	}
	if err := store.ServiceInstances.Delete(tx, s.instance.GUID); err != nil {
		return err
	}
	return s.instanceEvent(tx, "delete")
}
