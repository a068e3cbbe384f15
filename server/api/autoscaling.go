package api

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"cupola/server/control/autoscaling"
	"cupola/store"
	"cupola/store/cf"
)

// The routes below are those of Cloud Foundry's App Autoscaler, with its words. Its CLI plugin finds
// them at the host "autoscaler".
const autoscaler = "/v1/apps/"

// showHealth shows the plugin that there is an autoscaler.
func showHealth(*call) (*response, error) { return ok(doc{"alive": "true"}) }

func showScalingPolicy(c *call) (*response, error) {
	p, err := autoscaling.Get(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	return ok(p)
}

// maxPolicy bounds the JSON of a policy, in bytes: the largest that is accepted takes half of it.
const maxPolicy = 64 << 10

func putScalingPolicy(c *call) (*response, error) {
	body, err := readBody(c.Request, maxPolicy)
	if err != nil {
		return nil, err
	}
	p, err := autoscaling.Put(c.Session, c.guid(), body)
	if err != nil {
		return nil, err
	}
	return ok(p)
}

func deleteScalingPolicy(c *call) (*response, error) {
	if err := autoscaling.Delete(c.Session, c.guid()); err != nil {
		return nil, err
	}
	return ok(doc{})
}

// autoscalerFailure is an error as App Autoscaler shows it.
func autoscalerFailure(e *cf.Error) *response {
	status := faults[e.Kind].status
	return &response{status: status, body: doc{"code": http.StatusText(status), "message": e.Detail}}
}

// maxSubmission bounds the JSON of custom metrics, in bytes.
const maxSubmission = 64 << 10

// submitMetrics takes custom metrics of an app. Apps have no token: they show their instance's
// certificate, or the password of their binding.
func submitMetrics(c *call) (*response, error) {
	body, err := readBody(c.Request, maxSubmission)
	if err != nil {
		return nil, err
	}
	var m autoscaling.Submission
	err = c.tx(false, func() error {
		if err := autoscaling.CheckSubmitter(c.Tx, c.guid(), submitter(c.Request)); err != nil {
			return err
		}
		if m, err = autoscaling.ParseSubmission(body); err != nil {
			return err
		}
		m, err = autoscaling.Accept(c.Tx, c.guid(), m)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.s.Autoscaler.Submit(c.guid(), m)
	return &response{}, nil
}

func submitter(r *http.Request) (by autoscaling.Submitter) {
	by.Username, by.Password, _ = r.BasicAuth()
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		by.Certificate = r.TLS.PeerCertificates[0]
	}
	return by
}

// span is a part of a history that is asked for.
type span struct {
	from, to      time.Time // inclusive
	ascending     bool
	page, perPage int
}

// spanOf reads the query of a history. Times are nanoseconds since 1970.
func spanOf(q url.Values) (s span, err error) {
	s = span{to: time.Unix(0, math.MaxInt64), ascending: cmp.Or(q.Get("order-direction"), q.Get("order")) == "asc", page: 1, perPage: defaultPerPage}
	for name, t := range map[string]*time.Time{"start-time": &s.from, "end-time": &s.to} {
		text := q.Get(name)
		if text == "" || text == "-1" || name == "end-time" && text == "0" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s, badQuery("%s must be an integer", name)
		}
		*t = time.Unix(0, n)
	}
	if text := q.Get("page"); text != "" && text != "0" {
		if s.page, err = positive("page", text, math.MaxInt32); err != nil {
			return s, err
		}
	}
	if text := q.Get("results-per-page"); text != "" && text != "0" {
		s.perPage, err = positive("results-per-page", text, maxPerPage)
	}
	return s, err
}

// history answers with a page of what lies within a span.
func history[T any](c *call, s span, all []T, at func(T) time.Time, show func(T) doc) (*response, error) {
	all = slices.DeleteFunc(all, func(one T) bool { return at(one).Before(s.from) || at(one).After(s.to) })
	slices.SortStableFunc(all, func(a, b T) int { return at(a).Compare(at(b)) })
	if !s.ascending {
		slices.Reverse(all)
	}
	pages := (len(all) + s.perPage - 1) / s.perPage
	first := min((s.page-1)*s.perPage, len(all))
	resources := []doc{}
	for _, one := range all[first:min(first+s.perPage, len(all))] {
		resources = append(resources, show(one))
	}
	link := func(page int) string {
		if page < 1 || page > pages {
			return ""
		}
		q := c.Request.URL.Query()
		q.Set("page", strconv.Itoa(page))
		return c.url("%s?%s", c.Request.URL.Path, q.Encode())
	}
	return ok(doc{"total_results": len(all), "total_pages": pages, "page": s.page, "prev_url": link(s.page - 1), "next_url": link(s.page + 1), "resources": resources})
}

// spanOfApp is the app of {guid}, and what is asked for of its history.
func spanOfApp(c *call) (*cf.App, span, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, span{}, err
	}
	s, err := spanOf(c.Request.URL.Query())
	return app, s, err
}

func listScalingHistory(c *call) (*response, error) {
	app, s, err := spanOfApp(c)
	if err != nil {
		return nil, err
	}
	all, err := store.ScalingEvents.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	return history(c, s, all, func(e *cf.ScalingEvent) time.Time { return e.CreatedAt }, viewScalingEvent)
}

func viewScalingEvent(e *cf.ScalingEvent) doc {
	d := doc{"app_id": e.AppGUID, "timestamp": e.CreatedAt.UnixNano(), "scaling_type": e.Type, "status": e.Status,
		"old_instances": e.Old, "new_instances": e.New, "reason": e.Reason, "message": e.Message}
	if e.Status == cf.ScalingFailed {
		d["error"] = e.Error
	}
	return d
}

func listScalingMetrics(c *call) (*response, error) {
	app, s, err := spanOfApp(c)
	if err != nil {
		return nil, err
	}
	metric := autoscaling.Metric(c.param("metric"))
	return history(c, s, c.s.Autoscaler.Points(app.GUID, metric), func(p autoscaling.Point) time.Time { return p.At }, func(p autoscaling.Point) doc {
		return doc{"app_id": app.GUID, "name": metric, "unit": p.Unit, "value": strconv.FormatInt(p.Value, 10), "timestamp": p.At.UnixNano()}
	})
}
