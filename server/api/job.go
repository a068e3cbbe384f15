package api

import (
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

func viewJob(c *call, j *cf.Job) doc {
	errors, warnings := j.Errors, []doc{}
	if errors == nil {
		errors = []cf.JobError{}
	}
	for _, w := range j.Warnings {
		warnings = append(warnings, doc{"detail": w})
	}
	links := doc{"self": c.link("/v3/jobs/%s", j.GUID)}
	if j.ResourceType != "" {
		links[j.ResourceType] = c.link("/v3/%ss/%s", strings.TrimSuffix(j.ResourceType, "s"), j.ResourceGUID)
	}
	return with(resource(j.Resource), doc{"operation": j.Operation, "state": j.State, "errors": errors, "warnings": warnings, "links": links})
}

// showJob shows a job to every user who knows its GUID, as Cloud Controller does. It
// holds the answer to the CLI until a broker has answered; the CLI must see when a
// broker answers asynchronously.
func showJob(c *call) (*response, error) {
	return hold(c, func(c *call) (*response, bool, error) {
		j, err := store.Jobs.Get(c.Tx, c.guid())
		if err != nil {
			return nil, false, err
		}
		return &response{body: viewJob(c, j)}, j.State != cf.JobProcessing, nil
	})
}
