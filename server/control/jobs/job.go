package jobs

import (
	"encoding/json"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/deletion"
	"cupola/store"
	"cupola/store/cf"
)

// Manifest is the operation of jobs that apply manifests. Those of deletions are
// in package deletion.
const Manifest = "space.apply_manifest"

// input is the input of a job.
type input struct {
	Actor    cf.Actor          `json:"actor"`
	Scopes   []string          `json:"scopes,omitempty"`   // of the actor's token
	Bindings []control.Awaited `json:"bindings,omitempty"` // of a manifest
}

func (in *input) text() (string, error) {
	b, err := json.Marshal(in)
	return string(b), err
}

// Add adds a job that ends when its work is done and brokers are.
func Add(c *control.Session, operation, resourceType, guid string) (*cf.Job, error) {
	in := input{Actor: c.Who(), Scopes: c.Scopes, Bindings: c.Awaited}
	text, err := in.text()
	if err != nil {
		return nil, err
	}
	j := &cf.Job{Operation: operation, ResourceType: resourceType, ResourceGUID: guid, State: cf.JobProcessing, Input: text}
	return j, store.Jobs.Insert(c.Tx, j)
}

// Delete begins a deletion. Its job is COMPLETE if one transaction sufficed.
func Delete(c *control.Session, operation, resourceType, guid string) (*cf.Job, error) {
	j := &cf.Job{Operation: operation, ResourceType: resourceType, ResourceGUID: guid, State: cf.JobComplete}
	done, err := deletion.Delete(c, j, &deletion.Progress{Since: c.Tx.Now})
	if err != nil {
		return nil, err
	}
	if !done {
		return Add(c, operation, resourceType, guid)
	}
	return j, store.Jobs.Insert(c.Tx, j)
}

// end is the state of a job after a transaction: done, failed, or with more to do. Else
// it waits.
type end struct {
	done  bool
	fault *cf.Error
	more  bool
}

// work does one transaction of a job's work.
func work(c *control.Session, j *cf.Job) (e end, err error) {
	var in input
	if err := json.Unmarshal([]byte(j.Input), &in); err != nil {
		return e, err
	}
	if j.Operation == Manifest {
		return applyNext(c, j, &in)
	}
	c.Actor = &authz.Actor{GUID: in.Actor.GUID, Name: in.Actor.Name, Type: in.Actor.Type}
	d := &deletion.Progress{Since: j.CreatedAt}
	e.done, err = deletion.Delete(c, j, d)
	e.more = d.More
	if err == nil && !e.done && !e.more && d.Left == 0 {
		e.fault = d.Fault(c, j)
	}
	return e, err
}
