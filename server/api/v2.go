package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// The routes below are the ones of Cloud Controller's v2 API that clients still read:
// plugins of the CLI, older providers of Terraform. They see what they would see by
// the v3 API.
const v2API = "/v2/"

// v2Version is the version of the v2 API that Cloud Controller has besides Version.
const v2Version = "2.293.0"

// v2PerPage and v2MaxPerPage are Cloud Controller's defaults of v2 pages.
const (
	v2PerPage    = 50
	v2MaxPerPage = 100
)

// v2Views shows a page of rows as entities. It gets all of them, to read what they
// name at once.
type v2Views[T any] func(*call, []*T) ([]doc, error)

// v2Kind is one kind of thing of the v2 API.
type v2Kind[T any] struct {
	table   *store.Table[T]
	views   v2Views[T]
	filters map[string]string // the keys of q, and what the table calls them
	pick    func(*T) bool     // rows that are of the kind; nil: all
}

// list is the endpoint of the rows that the actor sees; where limits them, and may be
// nil.
func (k v2Kind[T]) list(where func(*call) (filter, value string, err error)) endpoint {
	return inTx(func(c *call) (*response, error) {
		q, err := v2Query(c.Request.URL, k.filters)
		if err != nil {
			return nil, err
		}
		q.Visible = c.Scope
		if where != nil {
			filter, value, err := where(c)
			if err != nil {
				return nil, err
			}
			q.Where[filter] = []string{value}
		}
		found, total, err := k.page(c, q)
		if err != nil {
			return nil, err
		}
		docs, err := k.views(c, found)
		if err != nil {
			return nil, err
		}
		return ok(c.v2Page(q.Page, q.PerPage, total, q.Desc, docs))
	})
}

func (k v2Kind[T]) page(c *call, q listQuery) (found []*T, total int, err error) {
	if k.pick == nil {
		return k.table.List(c.Tx, q.Query)
	}
	all := q.Query
	all.Page, all.PerPage = 0, 0
	found, _, err = k.table.List(c.Tx, all)
	found = slices.DeleteFunc(found, func(row *T) bool { return !k.pick(row) })
	return window(found, q), len(found), err
}

// show is the endpoint of one row that the actor sees.
func (k v2Kind[T]) show() endpoint {
	return inTx(func(c *call) (*response, error) {
		row, err := v2Find(c, k.table)
		if row != nil && k.pick != nil && !k.pick(row) {
			return nil, cf.Errorf(cf.ResourceNotFound, "not of this kind")
		}
		if err != nil {
			return nil, err
		}
		docs, err := k.views(c, []*T{row})
		if err != nil {
			return nil, err
		}
		if len(docs) == 0 { // an app without a web process
			return nil, cf.Errorf(cf.ResourceNotFound, "nothing to show")
		}
		return ok(docs[0])
	})
}

// ofParent limits a list to the rows of a parent that the actor sees.
func ofParent[T any](parent *store.Table[T], filter string) func(*call) (string, string, error) {
	return func(c *call) (string, string, error) {
		_, err := v2Find(c, parent)
		return filter, c.guid(), err
	}
}

// v2Find finds the row of {guid}. The v2 API forbids one that the actor does not see,
// where the v3 API does not find it.
func v2Find[T any](c *call, t *store.Table[T]) (*T, error) {
	return control.Forbidding(c.Session, t, c.guid())
}

// v2Of calls a handler if the actor sees the row of {guid}.
func v2Of[T any](t *store.Table[T], then func(*call) (*response, error)) func(*call) (*response, error) {
	return func(c *call) (*response, error) {
		if _, err := v2Find(c, t); err != nil {
			return nil, err
		}
		return then(c)
	}
}

// v2Query reads page, results-per-page, order-direction and q, which may be given
// several times.
func v2Query(at *url.URL, filters map[string]string) (q listQuery, err error) {
	v, err := v2Values(at)
	if err != nil {
		return q, badQuery("%s", at.RawQuery)
	}
	q = listQuery{Query: store.Query{Where: map[string][]string{}, Page: 1, PerPage: v2PerPage, Desc: v.Get("order-direction") == "desc"}}
	for name, into := range map[string]*int{"page": &q.Page, "results-per-page": &q.PerPage} {
		if text := v.Get(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 {
				return q, badQuery("%s must be a positive integer", strings.ReplaceAll(name, "-", "_"))
			}
		}
	}
	if q.PerPage > v2MaxPerPage {
		return q, badQuery("results_per_page must be <= %d", v2MaxPerPage)
	}
	for _, one := range v["q"] {
		for condition := range strings.SplitSeq(one, ";") {
			if err := q.condition(condition, filters); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

// v2Inlines reports whether a client asks for what relations name, not for their URLs
// alone. It gets what the CLI needs for its plugins, the stacks of apps.
func v2Inlines(c *call) bool {
	v, err := v2Values(c.Request.URL)
	if err != nil {
		return false
	}
	depth, err := strconv.Atoi(v.Get("inline-relations-depth"))
	return err == nil && depth > 0
}

// v2Values reads a query, in which conditions of q may stand between semicolons.
func v2Values(at *url.URL) (url.Values, error) {
	return url.ParseQuery(strings.ReplaceAll(at.RawQuery, ";", "%3B"))
}

// condition is one of q: "name:x" or "name IN x,y".
func (q *listQuery) condition(text string, filters map[string]string) error {
	key, value, one := strings.Cut(text, ":")
	values := []string{value}
	if k, list, several := strings.Cut(text, " IN "); several && len(k) < len(key) {
		key, values, one = k, strings.Split(list, ","), true
	}
	filter := filters[key]
	if !one || filter == "" {
		return badQuery("%s", key)
	}
	q.Where[filter] = values
	return nil
}

// v2Page is a page of a list.
func (c *call) v2Page(number, perPage, total int, desc bool, resources []doc) doc {
	pages := (total + perPage - 1) / perPage
	at := func(n int) any {
		if n < 1 || n > pages {
			return nil
		}
		v := url.Values{"order-direction": {"asc"}, "page": {strconv.Itoa(n)}, "results-per-page": {strconv.Itoa(perPage)}}
		if desc {
			v.Set("order-direction", "desc")
		}
		if given, err := v2Values(c.Request.URL); err == nil && given.Has("q") {
			v["q"] = given["q"]
		}
		return c.Request.URL.Path + "?" + v.Encode()
	}
	return doc{"total_results": total, "total_pages": pages, "prev_url": at(number - 1), "next_url": at(number + 1), "resources": resources}
}

// v2Resource is a thing as the v2 API shows it.
func v2Resource(r cf.Resource, path string, entity doc) doc {
	base := resource(r)
	return doc{"metadata": doc{"guid": r.GUID, "url": path + "/" + r.GUID, "created_at": base["created_at"], "updated_at": base["updated_at"]}, "entity": entity}
}

// v2Missing are Cloud Controller's errors for what is not there, by the noun of the
// path (its errors/v2.yml).
var v2Missing = map[string]struct {
	code        int
	name, start string
}{
	"apps":                            {100004, "AppNotFound", "The app could not be found: "},
	"organizations":                   {30003, "OrganizationNotFound", "The organization could not be found: "},
	"spaces":                          {40004, "SpaceNotFound", "The app space could not be found: "},
	"routes":                          {210002, "RouteNotFound", "The route could not be found: "},
	"domains":                         {130002, "DomainNotFound", "The domain could not be found: "},
	"shared_domains":                  {130002, "DomainNotFound", "The domain could not be found: "},
	"private_domains":                 {130002, "DomainNotFound", "The domain could not be found: "},
	"stacks":                          {250003, "StackNotFound", "The stack could not be found: "},
	"service_instances":               {60004, "ServiceInstanceNotFound", "The service instance could not be found: "},
	"user_provided_service_instances": {60004, "ServiceInstanceNotFound", "The service instance could not be found: "},
	"feature_flags":                   {330000, "FeatureFlagNotFound", "The feature flag could not be found: "},
}

// v2Failure is an error in the form of the v2 API.
func v2Failure(path string, e *cf.Error) *response {
	f := faults[e.Kind]
	body := doc{"description": e.Detail, "error_code": f.title, "code": f.code}
	if e.Kind == cf.ResourceNotFound {
		noun, guid, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, v2API), "config/"), "/")
		guid, _, _ = strings.Cut(guid, "/")
		if m, ok := v2Missing[noun]; ok {
			body = doc{"description": m.start + guid, "error_code": "CF-" + m.name, "code": m.code}
		}
	}
	return &response{status: f.status, body: body}
}

// v2Refusal is an error that only the v2 API has.
func v2Refusal(status, code int, name, format string, args ...any) *response {
	return &response{status: status, body: doc{"description": fmt.Sprintf(format, args...), "error_code": "CF-" + name, "code": code}}
}

// v2Each shows rows one by one.
func v2Each[T any](view func(*call, *T) (doc, error)) v2Views[T] {
	return func(c *call, rows []*T) ([]doc, error) {
		docs := []doc{}
		for _, row := range rows {
			d, err := view(c, row)
			if err != nil {
				return nil, err
			}
			docs = append(docs, d)
		}
		return docs, nil
	}
}
