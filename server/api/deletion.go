package api

import (
	"cupola/server/control/deletion"
	"cupola/store/cf"
)

// deletes begins a deletion, and answers with its job: it is COMPLETE if one
// transaction sufficed.
func (c *call) deletes(operation, resourceType, guid string) (*response, error) {
	d := &deletion.Progress{Since: c.Tx.Now}
	done, err := deletion.Delete(c.Session, &cf.Job{Operation: operation, ResourceGUID: guid}, d)
	if err != nil {
		return nil, err
	}
	if !done {
		return c.waiting(operation, resourceType, guid)
	}
	return c.accepted(operation, resourceType, guid)
}
