package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"cupola/server/authz"
	"cupola/store"
	"cupola/store/cf"
)

// waitingFor is the input of a job that waits for brokers.
type waitingFor struct {
	Actor    cf.Actor  `json:"actor"`
	Bindings []awaited `json:"bindings,omitempty"` // of a manifest
}

// waiting answers with a job that ends when brokers are done.
func (c *call) waiting(operation, resourceType, guid string) (*response, error) {
	input, err := json.Marshal(waitingFor{Actor: c.who(), Bindings: c.awaited})
	if err != nil {
		return nil, err
	}
	return c.job(&cf.Job{Operation: operation, ResourceGUID: guid, ResourceType: resourceType, State: cf.JobProcessing, Input: string(input)})
}

// resweep is how often jobs that wait are looked at though nothing changed.
const resweep = time.Minute

// Run ends the jobs that wait for brokers, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	changed, stop := s.Store.Watch(store.ServiceBindings.Name(), store.ServiceInstances.Name())
	defer stop()
	tick := time.NewTicker(resweep)
	defer tick.Stop()
	for {
		if err := s.endWaits(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "waiting jobs were not ended", slog.Any("err", err))
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// endWaits looks at each job that waits.
func (s *Server) endWaits(ctx context.Context) error {
	var jobs []*cf.Job
	err := s.Store.Read(ctx, func(tx *store.Tx) (err error) {
		jobs, _, err = store.Jobs.List(tx, store.Query{Where: map[string][]string{"states": {string(cf.JobProcessing)},
			"operations": {jobDeleteApp, jobDeleteSpace, jobDeleteOrg, jobApplyManifest}}})
		return err
	})
	for _, j := range jobs {
		err = errors.Join(err, s.Store.Write(ctx, func(tx *store.Tx) error { return s.endWait(ctx, tx, j) }))
	}
	return err
}

// endWait ends a job if what it waits for has come to an end. It acts as whoever
// asked for it.
func (s *Server) endWait(ctx context.Context, tx *store.Tx, j *cf.Job) error {
	var w waitingFor
	if err := json.Unmarshal([]byte(j.Input), &w); err != nil {
		return err
	}
	c := &call{s: s, ctx: ctx, Tx: tx, Actor: &authz.Actor{GUID: w.Actor.GUID, Name: w.Actor.Name, Type: w.Actor.Type}}
	done, fault, err := c.endOf(j, w)
	switch {
	case err != nil:
		return err
	case fault != nil:
		j.State, j.Errors = cf.JobFailed, []cf.JobError{jobError(fault)}
	case done:
		j.State = cf.JobComplete
	default:
		return nil
	}
	return store.Jobs.Update(tx, j)
}

// endOf tells whether what a job waits for is there, or why it never will be.
func (c *call) endOf(j *cf.Job, w waitingFor) (done bool, fault *cf.Error, err error) {
	if j.Operation == jobApplyManifest {
		return c.bindingsMade(w.Bindings)
	}
	d := &deletion{since: j.CreatedAt}
	done, err = c.delete(j, d)
	if err == nil && !done && d.left == 0 {
		fault = d.fault(c, j)
	}
	return done, fault, err
}
