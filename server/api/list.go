package api

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// view shows a row as the API's JSON.
type view[T any] func(*call, *T) doc

// list is the endpoint of a table's rows that the actor sees.
func list[T any](t *store.Table[T], v view[T], also ...string) endpoint {
	return inTx(func(c *call) (*response, error) {
		return listRows(c, t, v, nil, also...)
	})
}

// listRows answers with a page of rows; limit adds to what the query asks for.
func listRows[T any](c *call, t *store.Table[T], v view[T], limit func(*listQuery) error, also ...string) (*response, error) {
	q, err := parseQuery(c, t, also...)
	if err != nil {
		return nil, err
	}
	q.Visible = c.Scope
	if limit != nil {
		if err := limit(&q); err != nil {
			return nil, err
		}
	}
	found, total, err := t.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	return ok(page(c, q, found, total, v))
}

// matching limits a list to the rows whose filter has the value.
func matching(filter, value string) func(*listQuery) error {
	return func(q *listQuery) error {
		q.Where[filter] = []string{value}
		return nil
	}
}

// page is the JSON of one page of a list.
func page[T any](c *call, q listQuery, found []*T, total int, v view[T]) doc {
	resources := make([]doc, 0, len(found))
	for _, row := range found {
		resources = append(resources, v(c, row))
	}
	return doc{"pagination": c.pagination(q.Page, q.PerPage, total), "resources": resources}
}

func (c *call) pagination(number, perPage, total int) doc {
	pages := max(1, int(math.Ceil(float64(total)/float64(perPage))))
	at := func(n int) any {
		if n < 1 || n > pages {
			return nil
		}
		v := url.Values{}
		for k, x := range c.Request.URL.Query() {
			v[k] = x
		}
		v.Set("page", strconv.Itoa(n))
		v.Set("per_page", strconv.Itoa(perPage))
		return c.link("%s?%s", c.Request.URL.Path, v.Encode())
	}
	return doc{"total_results": total, "total_pages": pages,
		"first": at(1), "last": at(pages), "next": at(number + 1), "previous": at(number - 1)}
}

// show is the endpoint of one row that the actor sees.
func show[T any](t *store.Table[T], v view[T]) endpoint {
	return inTx(func(c *call) (*response, error) {
		row, err := t.Visible(c.Tx, c.guid(), c.Scope)
		if err != nil {
			return nil, err
		}
		return ok(v(c, row))
	})
}

// resource is what every noun's JSON begins with.
func resource(r cf.Resource) doc {
	updated := r.UpdatedAt
	if updated.IsZero() {
		updated = r.CreatedAt
	}
	return doc{"guid": r.GUID, "created_at": stamp(r.CreatedAt), "updated_at": stamp(updated)}
}

// stamp is a time as the API shows it: RFC 3339 in whole seconds.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// with adds entries to a doc.
func with(d doc, more doc) doc {
	for k, v := range more {
		d[k] = v
	}
	return d
}

// metadata is the JSON of labels and annotations, which are never null.
func metadata(m cf.Metadata) doc {
	return doc{"labels": orEmpty(m.Labels), "annotations": orEmpty(m.Annotations)}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// toOne is a relationship to one thing, "" for none.
func toOne(guid string) doc {
	if guid == "" {
		return doc{"data": nil}
	}
	return doc{"data": doc{"guid": guid}}
}

// toMany is a relationship to several things.
func toMany(guids []string) doc {
	data := []doc{}
	for _, g := range guids {
		data = append(data, doc{"guid": g})
	}
	return doc{"data": data}
}

// accepted is a 202 with the job that did the work.
func (c *call) accepted(operation, resourceType, guid string, warnings ...string) (*response, error) {
	return c.job(&cf.Job{Operation: operation, ResourceGUID: guid, ResourceType: resourceType, State: cf.JobComplete, Warnings: warnings})
}

func (c *call) job(j *cf.Job) (*response, error) {
	if err := store.Jobs.Insert(c.Tx, j); err != nil {
		return nil, err
	}
	return underWay(c, j), nil
}

// underWay is a 202 with a job; none of none.
func underWay(c *call, j *cf.Job) *response {
	if j == nil {
		return nil
	}
	return &response{status: http.StatusAccepted, header: http.Header{"Location": {c.url("/v3/jobs/%s", j.GUID)}}}
}
