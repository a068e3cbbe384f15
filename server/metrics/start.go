package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/server/otlp"
	"cupola/server/reconcile"
)

// TraceContainer is what a cell takes to trace its containers; nil where no traces are sent.
func (m *Metrics) TraceContainer() func(lrp.Container) func(lrp.Trace) {
	if m.exporter == nil {
		return nil
	}
	return m.traceContainer
}

// traceContainer samples stagings and starts of instances of apps.
func (m *Metrics) traceContainer(c lrp.Container) func(lrp.Trace) {
	name, what := "stage", c.GUID
	switch {
	case c.Kind == lrp.KindInstance && c.Domain == lrp.DomainApps:
		name, what = "start", c.ProcessGUID+" "+strconv.Itoa(c.Index)
	case c.Domain != lrp.DomainStaging:
		return nil
	}
	trace, parent := m.beginFor(c.Log.GUID, what)
	if trace == "" {
		return nil
	}
	return func(t lrp.Trace) {
		s := otlp.Span{Trace: trace, Parent: parent, Name: name, Began: t.Began, Ended: t.Ended, Failure: t.Failure, Text: attributes(c)}
		m.exporter.Record(s)
		for _, step := range append(t.Steps, phases(t.Result)...) {
			m.exporter.Record(stepSpan(step, s))
		}
	}
}

// beginFor begins a trace of what is done for an app, below the request that caused it; "": it is not sampled.
func (m *Metrics) beginFor(app, what string) (trace, parent string) {
	parent, known := m.causes.of(app, what)
	switch {
	case parent != "":
		return otlp.Child(parent), parent
	case known:
		return "", ""
	}
	return m.exporter.Begin(http.Header{}), ""
}

// stepSpan is the span of a step below another one.
func stepSpan(step lrp.Step, of otlp.Span) otlp.Span {
	s := otlp.Span{Trace: otlp.Child(of.Trace), Parent: of.Trace, Name: step.Name, Began: step.Began, Ended: step.Ended, Text: map[string]string{"cupola.step.detail": step.Detail}}
	for _, name := range []string{"cloudfoundry.app.id", "cloudfoundry.app.name"} {
		s.Text[name] = of.Text[name]
	}
	if step.Failed {
		s.Failure = cmp.Or(of.Failure, step.Name+" failed")
	}
	return s
}

// attributes are those of a container of an app, by OpenTelemetry's names.
func attributes(c lrp.Container) map[string]string {
	tags := c.Log.Tags
	all := map[string]string{"cloudfoundry.app.id": c.Log.GUID, "cloudfoundry.app.name": tags["app_name"], "cloudfoundry.space.id": tags["space_id"], "cloudfoundry.space.name": tags["space_name"],
		"cloudfoundry.org.id": tags["organization_id"], "cloudfoundry.org.name": tags["organization_name"], "cloudfoundry.process.id": tags["process_id"], "cloudfoundry.process.type": tags["process_type"],
		"container.id": c.GUID, "container.image.name": c.RootFS}
	if c.Kind == lrp.KindInstance {
		all["cloudfoundry.app.instance.id"] = strconv.Itoa(c.Index)
	}
	return all
}

// phases are what the result of a staging says of buildpacks' scripts; none of another task's.
func phases(result []byte) (steps []lrp.Step) {
	var r contract.Result
	if len(result) == 0 || json.Unmarshal(result, &r) != nil {
		return nil
	}
	for _, p := range r.Phases[:min(len(r.Phases), contract.MaxPhases)] {
		if p.Name == "detect" {
			p.Failed = false // it says no to the app
		}
		steps = append(steps, lrp.Step{Name: p.Name, Detail: desire.Redact(p.Buildpack), Began: p.Began, Ended: p.Ended, Failed: p.Failed})
	}
	return steps
}

// TracedPull is pull with a span of each image that is pulled for an app.
func (m *Metrics) TracedPull(pull reconcile.Pull) reconcile.Pull {
	if m.exporter == nil {
		return pull
	}
	return func(ctx context.Context, p reconcile.ImagePull) (reconcile.Image, error) {
		began := time.Now()
		image, err := pull(ctx, p)
		trace, parent := "", ""
		if p.AppGUID != "" {
			trace, parent = m.beginFor(p.AppGUID, "pull "+p.Reference)
		}
		if trace != "" {
			s := otlp.Span{Trace: trace, Parent: parent, Name: "pull image", Began: began, Ended: time.Now(), Text: map[string]string{"cloudfoundry.app.id": p.AppGUID, "container.image.name": p.Reference}}
			if err != nil {
				s.Failure = fmt.Sprint(err)
			}
			m.exporter.Record(s)
		}
		return image, err
	}
}
