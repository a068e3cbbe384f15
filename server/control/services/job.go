package services

import (
	"encoding/json"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Ask adds a job for which a broker will be asked.
func Ask(c *control.Session, operation, resourceType, guid string, work cf.ServiceWork) (*cf.Job, error) {
	work.Actor, work.Manifest = c.Who(), c.Manifest
	return addJob(c, operation, resourceType, guid, work)
}

func addJob(c *control.Session, operation, resourceType, guid string, input any) (*cf.Job, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	j := &cf.Job{Operation: operation, ResourceType: resourceType, ResourceGUID: guid, State: cf.JobProcessing, Input: string(text)}
	return j, store.Jobs.Insert(c.Tx, j)
}
