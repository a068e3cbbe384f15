package api

import (
	"cupola/server/control"
	"cupola/store/cf"
)

// viewOperation is the last_operation of a service instance or a binding.
func viewOperation(o cf.LastOperation) doc {
	return doc{"type": o.Type, "state": o.State, "description": control.OrNil(o.Description), "created_at": stamp(o.CreatedAt), "updated_at": stamp(o.UpdatedAt)}
}

// decodeAudited is decode, and gives the request as audit events show it.
func decodeAudited(c *call, v any) (doc, error) {
	body, err := readBody(c.Request, maxBody)
	if err != nil {
		return nil, err
	}
	return control.Audited(body), decodeBody(c, body, v)
}

// provide decodes a request and makes a row, by a job where a broker is asked.
func provide[T, R any](verb func(*control.Session, R, doc) (*T, *cf.Job, error), v view[T]) endpoint {
	return func(c *call) (*response, error) {
		var req R
		audited, err := decodeAudited(c, &req)
		if err != nil {
			return nil, err
		}
		row, j, err := verb(c.Session, req, audited)
		if err != nil || j != nil {
			return underWay(c, j), err
		}
		return created(v(c, row))
	}
}

// amend finds a row, decodes a request and changes the row, by a job where a broker
// is asked.
func amend[T, R any](find finder[T], verb func(*control.Session, *T, R, doc) (*cf.Job, error), v view[T]) endpoint {
	return func(c *call) (*response, error) {
		row, err := find(c)
		if err != nil {
			return nil, err
		}
		var req R
		audited, err := decodeAudited(c, &req)
		if err != nil {
			return nil, err
		}
		j, err := verb(c.Session, row, req, audited)
		if err != nil || j != nil {
			return underWay(c, j), err
		}
		return ok(v(c, row))
	}
}

// direct makes a verb for which no broker is asked one that might.
func direct[T, R any](verb func(*control.Session, *T, R, doc) error) func(*control.Session, *T, R, doc) (*cf.Job, error) {
	return func(c *control.Session, row *T, req R, audited doc) (*cf.Job, error) {
		return nil, verb(c, row, req, audited)
	}
}

// withdraw deletes a row, by a job where a broker is asked.
func withdraw(verb func(*control.Session, string) (*cf.Job, error)) endpoint {
	return func(c *call) (*response, error) {
		j, err := verb(c.Session, c.guid())
		if err != nil || j != nil {
			return underWay(c, j), err
		}
		return noContent()
	}
}
