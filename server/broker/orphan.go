package broker

import (
	"context"

	"cupola/server/control/audit"
	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// removeOrphan deletes at a broker what it may have made for a request that
// failed.
type removeOrphan struct{}

// addOrphan adds an operation that removes what a step may have left at its broker.
func addOrphan(tx *store.Tx, s *step) error {
	o := &cf.Orphan{BrokerGUID: s.broker.GUID, OfferingID: s.offering.CatalogID, PlanID: s.plan.CatalogID, InstanceGUID: s.instance.GUID}
	if b, ok := s.task.(interface{ bindingGUID() string }); ok {
		o.BindingGUID = b.bindingGUID()
	}
	return store.BrokerOperations.Insert(tx, &cf.BrokerOperation{BrokerGUID: o.BrokerGUID, Phase: cf.PhaseSend, DueAt: tx.Now, Orphan: o})
}

func (*removeOrphan) load(tx *store.Tx, s *step) (err error) {
	s.broker, err = store.ServiceBrokers.Get(tx, s.op.Orphan.BrokerGUID)
	return err
}

func orphaned(s *step) osb.Binding {
	o := s.op.Orphan
	return osb.Binding{GUID: o.BindingGUID, Instance: osb.Instance{GUID: o.InstanceGUID, OfferingID: o.OfferingID, PlanID: o.PlanID}}
}

func (*removeOrphan) send(ctx context.Context, l *Loop, s *step) answer {
	var d osb.Deleted
	var err error
	if b := orphaned(s); b.GUID != "" {
		d, err = l.Client.Unbind(ctx, l.target(s, s.broker), b)
	} else {
		d, err = l.Client.Deprovision(ctx, l.target(s, s.broker), b.Instance)
	}
	return answer{err: err, async: d.Async, operation: d.Operation}
}

func (*removeOrphan) poll(ctx context.Context, l *Loop, s *step) (a answer) {
	if b := orphaned(s); b.GUID != "" {
		a.state, a.err = l.Client.BindingOperation(ctx, l.target(s, s.broker), b, s.op.Operation)
	} else {
		a.state, a.err = l.Client.InstanceOperation(ctx, l.target(s, s.broker), b.Instance, s.op.Operation)
	}
	return a
}

func (*removeOrphan) began(*store.Tx, *step, answer) error     { return nil }
func (*removeOrphan) said(*store.Tx, *step, string) error      { return nil }
func (*removeOrphan) succeeded(*store.Tx, *step, answer) error { return nil }
func (*removeOrphan) failed(*store.Tx, *step, fault) error     { return nil }
func (*removeOrphan) words() words                             { return words{send: "delete", poll: "delete", deletes: true} }

// gone ends it: there is no broker left to ask.
func (*removeOrphan) gone(*step) fault { return fault{} }

// retryOrphan schedules another attempt to remove an orphan, with exponential back-off.
func (l *Loop) retryOrphan(tx *store.Tx, s *step, why error) error {
	s.op.Phase, s.op.Operation = cf.PhaseSend, ""
	s.op.Attempts++
	s.op.DueAt = tx.Now.Add(min(l.OrphanRetry<<min(s.op.Orphan.Failures, 20), orphanRest))
	s.op.Orphan.Failures++
	return l.untilAbandoned(tx, s, why)
}

// untilAbandoned goes on with an orphan, if it has not been cared for long
// enough: what could not be removed by then is left, and said. Cloud Controller gives up too, after ten attempts, and says nothing.
func (l *Loop) untilAbandoned(tx *store.Tx, s *step, why error) error {
	if !s.op.DueAt.After(s.op.CreatedAt.Add(l.OrphanCare)) {
		return store.BrokerOperations.Update(tx, s.op)
	}
	o := s.op.Orphan
	l.Log.Error("orphan was left at a service broker", "broker", s.broker.Name, "service_instance_guid", o.InstanceGUID, "service_binding_guid", o.BindingGUID, "err", why)
	data := audit.Data{"service_instance_guid": o.InstanceGUID, "service_binding_guid": nil, "reason": why.Error()}
	if o.BindingGUID != "" {
		data["service_binding_guid"] = o.BindingGUID
	}
	target := audit.Target{Type: "service_broker", GUID: s.broker.GUID, Name: s.broker.Name}
	if err := audit.Write(tx, brokerActor(s.broker), audit.ServiceBrokerAbandonOrphan, target, data); err != nil {
		return err
	}
	return store.BrokerOperations.Delete(tx, s.op.GUID)
}
