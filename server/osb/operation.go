package osb

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The states of an operation.
const (
	InProgress = "in progress"
	Succeeded  = "succeeded"
	Failed     = "failed"
)

// Operation is how an asynchronous operation stands.
type Operation struct {
	State       string // "" with Gone
	Description string
	Gone        bool // what was operated on is not there (any more)
	RetryAfter  time.Duration
}

// InstanceOperation asks how an operation on an instance stands; name is the
// broker's name of it, "" for none.
func (c *Client) InstanceOperation(ctx context.Context, b Broker, i Instance, name string) (Operation, error) {
	return c.operation(ctx, b, request{path: i.path(), query: i.query(), user: i.User}, name)
}

// BindingOperation is InstanceOperation for a binding.
func (c *Client) BindingOperation(ctx context.Context, b Broker, r Binding, name string) (Operation, error) {
	return c.operation(ctx, b, request{path: r.path(), query: r.query(), user: r.User}, name)
}

func (c *Client) operation(ctx context.Context, b Broker, r request, name string) (o Operation, err error) {
	r.method, r.path = http.MethodGet, r.path+"/last_operation"
	if name != "" {
		r.query = url.Values{"service_id": r.query["service_id"], "plan_id": r.query["plan_id"], "operation": {name}}
	}
	a, err := c.do(ctx, b, r)
	if err != nil {
		return o, err
	}
	o.RetryAfter = retryAfter(a.header.Get("Retry-After"), time.Now())
	switch a.status {
	case http.StatusOK:
		return a.state(o)
	case 201, 202:
		if err := a.mustBeObject(false); err != nil {
			return o, err
		}
		return o, a.bad()
	case http.StatusBadRequest:
		o.State, o.Description = Failed, "Bad request"
		if d, ok := a.object["description"]; ok {
			o.Description = plain(d)
		}
		return o, nil
	case http.StatusGone:
		o.Gone = true
		return o, nil
	}
	return o, a.other()
}

func (a *answer) state(o Operation) (Operation, error) {
	if err := a.mustBeObject(false); err != nil {
		return o, err
	}
	o.State = text(a.object["state"])
	if !slices.Contains([]string{Succeeded, Failed, InProgress}, o.State) {
		return o, a.malformed("expected state was 'succeeded', broker returned '%s'.", plain(a.object["state"]))
	}
	o.Description = text(a.object["description"])
	return o, nil
}

// retryAfter reads the header: seconds, or a date. 0 is none.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if n, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(n, 0), 1<<31)) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
