package api

import "cupola/server/control/jobs"

// deletes finds a row and begins its deletion. The answer is a job: it is COMPLETE if
// one transaction sufficed.
func deletes[T any](find finder[T], operation, resourceType string) endpoint {
	return func(c *call) (*response, error) {
		if _, err := find(c); err != nil {
			return nil, err
		}
		j, err := jobs.Delete(c.Session, operation, resourceType, c.guid())
		return underWay(c, j), err
	}
}
