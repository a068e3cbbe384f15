package broker

import (
	"context"
	"encoding/json"

	"cupola/server/osb"
	"cupola/server/outbound"
	"cupola/store"
	"cupola/store/cf"
)

// task is the work for one kind of job, or for an orphan.
type task interface {
	// load reads the rows it is about. What is not there (any more) is a
	// cf.ResourceNotFound, what cancels the task a fault.
	load(tx *store.Tx, s *step) error
	// send asks the broker for it, poll how it stands.
	send(ctx context.Context, l *Loop, s *step) answer
	poll(ctx context.Context, l *Loop, s *step) answer
	// began writes that the broker does it, said what the broker says of it,
	// succeeded and failed how it ended.
	began(tx *store.Tx, s *step, a answer) error
	said(tx *store.Tx, s *step, description string) error
	succeeded(tx *store.Tx, s *step, a answer) error
	failed(tx *store.Tx, s *step, f fault) error
	// gone is the fault of a task whose rows are gone.
	gone(s *step) fault
	words() words
}

// words are what Cloud Controller says of a task that fails.
type words struct {
	send    string // "provision": … could not be completed
	poll    string // "create managed": … could not be completed
	timeout string // Service Broker failed to … within the required time.
	creates bool   // the broker may be left with an orphan
	deletes bool   // what is gone is done
}

// answer is what came of asking.
type answer struct {
	err       error
	async     bool
	operation string
	state     osb.Operation
	wait      bool // other work must be done first
	unsure    bool // the broker may have done it in spite of err

	provisioned osb.Provisioned
	bound       osb.Bound
	catalog     *osb.Catalog
}

// target is a broker for the client.
func (l *Loop) target(s *step, b *cf.ServiceBroker) osb.Broker {
	return osb.Broker{URL: b.URL, Username: b.Username, Password: b.Password, Dial: s.rules.Dial(l.Network)}
}

// step is one step of an operation, and all that it takes to make it.
type step struct {
	op        *cf.BrokerOperation
	task      task
	job       *cf.Job // nil for an orphan
	work      cf.ServiceWork
	cancelled *fault // why the broker is not asked
	done      bool   // the job has ended: only the operation must be deleted
	asked     *step  // what was seen when the broker was asked
	resent    bool   // the broker was asked the same before
	broker    *cf.ServiceBroker
	rules     *outbound.Rules // where the broker may be

	instance *cf.ServiceInstance
	plan     *cf.ServicePlan
	offering *cf.ServiceOffering
	space    *cf.Space // the instance's
	org      *cf.Org
}

// asks reports whether the broker must be asked.
func (s *step) asks() bool { return !s.done && s.cancelled == nil }

// taskOf is what a job asks for; nil for a job that is not a broker's.
func taskOf(j *cf.Job) task {
	switch j.Operation {
	case cf.JobSyncBroker:
		return &syncBroker{}
	case cf.JobUpdateBroker:
		return &updateBroker{}
	case cf.JobCreateInstance:
		return &createInstance{instanceTask{cf.OpCreate}}
	case cf.JobUpdateInstance:
		return &updateInstance{instanceTask: instanceTask{cf.OpUpdate}}
	case cf.JobDeleteInstance:
		return &deleteInstance{instanceTask: instanceTask{cf.OpDelete}}
	case cf.JobCreateBinding, cf.JobCreateKey:
		return createBinding{&bindingTask{kind: cf.OpCreate}}
	case cf.JobDeleteBinding, cf.JobDeleteKey:
		return deleteBinding{&bindingTask{kind: cf.OpDelete}}
	case cf.JobCreateRouteBinding:
		return createBinding{&bindingTask{kind: cf.OpCreate, ofRoute: true}}
	case cf.JobDeleteRouteBinding:
		return deleteBinding{&bindingTask{kind: cf.OpDelete, ofRoute: true}}
	}
	return nil
}

// jobKinds are the operations of jobs that taskOf knows.
var jobKinds = []string{cf.JobSyncBroker, cf.JobUpdateBroker, cf.JobCreateInstance, cf.JobUpdateInstance, cf.JobDeleteInstance,
	cf.JobCreateBinding, cf.JobDeleteBinding, cf.JobCreateKey, cf.JobDeleteKey, cf.JobCreateRouteBinding, cf.JobDeleteRouteBinding}

// load reads what a step needs.
func load(tx *store.Tx, op *cf.BrokerOperation) (*step, error) {
	s := &step{op: op}
	if err := s.loadTask(tx); err != nil || s.done {
		return s, err
	}
	err := s.task.load(tx, s)
	if store.IsNotFound(err) {
		err = s.task.gone(s)
	}
	if f, ok := asFault(err); ok {
		s.cancelled = &f
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.rules, err = outbound.Of(tx, s.broker.SpaceGUID)
	return s, err
}

func (s *step) loadTask(tx *store.Tx) error {
	if s.op.Orphan != nil {
		s.task = &removeOrphan{}
		return nil
	}
	job, err := store.Jobs.Get(tx, s.op.JobGUID)
	if err != nil {
		return err
	}
	s.job, s.task = job, taskOf(job)
	s.done = s.task == nil || job.State == cf.JobComplete || job.State == cf.JobFailed
	return nil
}

// input reads the job's input.
func (s *step) input(v any) error {
	if s.job.Input == "" {
		return nil
	}
	return json.Unmarshal([]byte(s.job.Input), v)
}
