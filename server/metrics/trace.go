package metrics

import (
	"context"
	"net/http"
	"os"
	"time"

	"cupola/server/control/audit"
	"cupola/server/otlp"
	"cupola/server/router"
)

// resource says what sends: this daemon.
func resource(c Config) map[string]string {
	r := map[string]string{"service.name": "cupola", "service.version": c.Version, "deployment.environment.name": c.Environment}
	if host, err := os.Hostname(); err == nil {
		r["host.name"] = host
	}
	return r
}

// Send sends metrics and traces until ctx ends.
func (m *Metrics) Send(ctx context.Context) error {
	if m.exporter == nil {
		<-ctx.Done()
		return nil
	}
	return m.exporter.Run(ctx)
}

// Trace is what the router continues traces by; nil where none are sent.
func (m *Metrics) Trace() func(http.Header) string {
	if m.exporter == nil {
		return nil
	}
	return m.exporter.Begin
}

// Traced sends the span of a request to an app.
func (m *Metrics) Traced(e router.AccessEntry) {
	if e.Trace == "" {
		return
	}
	m.exporter.Record(otlp.Span{
		Trace: e.Trace, Request: e.Request.Header, Name: e.Request.Method, Began: e.Began, Ended: e.At, Status: e.Status,
		Text: map[string]string{
			"http.request.method": e.Request.Method, "server.address": e.Request.Host, "url.path": e.Request.URL.Path, "user_agent.original": e.Request.UserAgent(),
			"cloudfoundry.app.id": e.AppGUID, "cloudfoundry.app.instance.id": e.Index, "vcap_request_id": e.ID,
		},
	})
}

// tracedAPI sends spans of requests to the API, and notes which apps they changed. The names of routes are those of the
// patterns that the API's handler chose.
func (m *Metrics) tracedAPI(next http.Handler) http.Handler {
	if m.exporter == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace := m.exporter.Begin(r.Header)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r = r.WithContext(audit.Observed(r.Context(), func(app string) { m.causes.set(app, trace) }))
		}
		if trace == "" {
			next.ServeHTTP(w, r)
			return
		}
		began, answer := time.Now(), &noted{ResponseWriter: w}
		defer func() {
			m.exporter.Record(otlp.Span{
				Trace: trace, Request: r.Header, Name: nameOf(r), Began: began, Ended: time.Now(), Status: answer.status,
				Text: map[string]string{"http.request.method": r.Method, "http.route": r.Pattern, "url.path": r.URL.Path, "server.address": r.Host, "user_agent.original": r.UserAgent()},
			})
		}()
		next.ServeHTTP(answer, r)
	})
}

// nameOf is the name of an API request's span.
func nameOf(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return r.Method
}

// noted is an answer whose status is noted.
type noted struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// WriteHeader notes the status.
func (n *noted) WriteHeader(status int) {
	if n.status == 0 || n.status < http.StatusOK { // which others follow
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

// Write notes the status that an answer has without WriteHeader.
func (n *noted) Write(p []byte) (int, error) {
	if n.status == 0 {
		n.status = http.StatusOK
	}
	return n.ResponseWriter.Write(p)
}
