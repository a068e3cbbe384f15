package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OpenTelemetry's defaults for those who send.
const (
	metricInterval = time.Minute
	spanInterval   = 5 * time.Second
	maxSpans       = 2048 // that wait
	sendTime       = 10 * time.Second
)

// Config is what an Exporter is made of.
type Config struct {
	// URL is the collector's, to which /v1/metrics and /v1/traces are added, as in
	// OTEL_EXPORTER_OTLP_ENDPOINT.
	URL *url.URL
	// Headers go with each request, like a key of the collector's.
	Headers http.Header
	// Sample is the part of requests without a trace that is sampled, 0 to 1.
	Sample   float64
	Gatherer prometheus.Gatherer
	// Resource says what sends, by OpenTelemetry's names of attributes.
	Resource map[string]string
	Log      *slog.Logger
	// Interval is between two sendings of metrics; 0: a minute.
	Interval time.Duration
}

// Exporter sends metrics and spans. Its methods may be called at the same time.
type Exporter struct {
	Config
	client *http.Client
	began  time.Time

	mu      sync.Mutex
	spans   []message
	dropped int // since they were last sent

	failing map[string]bool // signals that the collector does not take; only Run has it
}

// New makes an Exporter, which sends while it runs.
func New(c Config) *Exporter {
	if c.Interval == 0 {
		c.Interval = metricInterval
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Exporter{Config: c, client: client, began: time.Now(), failing: map[string]bool{}}
}

// Run sends until ctx ends, and then once more what there is. A collector that does
// not take it is logged: it is not a failure of the daemon.
func (e *Exporter) Run(ctx context.Context) error {
	metrics, spans := time.NewTicker(e.Interval), time.NewTicker(min(spanInterval, e.Interval))
	defer metrics.Stop()
	defer spans.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if err := errors.Join(e.sendSpans(last), e.sendMetrics(last)); err != nil {
				e.Log.WarnContext(ctx, "OpenTelemetry's collector does not take the last metrics and traces", "err", err)
			}
			return nil
		case <-metrics.C:
			e.report(ctx, "metrics", e.sendMetrics(ctx))
		case <-spans.C:
			if e.hasSpans() {
				e.report(ctx, "traces", e.sendSpans(ctx))
			}
		}
	}
}

// report logs when the collector does not take a signal, metrics or traces, and when
// it takes that again: many collectors take only one of them.
func (e *Exporter) report(ctx context.Context, signal string, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !e.failing[signal]:
		e.Log.WarnContext(ctx, "OpenTelemetry's collector does not take data", "signal", signal, "err", err)
	case err == nil && e.failing[signal]:
		e.Log.InfoContext(ctx, "OpenTelemetry's collector takes data again", "signal", signal)
	}
	e.failing[signal] = err != nil
}

func (e *Exporter) hasSpans() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.spans) > 0
}

func (e *Exporter) sendMetrics(ctx context.Context) error {
	all, err := e.metrics(time.Now()) // what could be gathered is good
	return errors.Join(err, e.send(ctx, "v1/metrics", all))
}

func (e *Exporter) sendSpans(ctx context.Context) error {
	e.mu.Lock()
	spans, dropped := e.spans, e.dropped
	e.spans, e.dropped = nil, 0
	e.mu.Unlock()
	if dropped > 0 {
		e.Log.WarnContext(ctx, "spans were dropped: more were sampled than are sent", "spans", dropped)
	}
	if len(spans) == 0 {
		return nil
	}
	return e.send(ctx, "v1/traces", spans)
}

// send posts spans or metrics.
func (e *Exporter) send(ctx context.Context, path string, parts []message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL.JoinPath(path).String(), bytes.NewReader(data(e.Resource, parts)))
	if err != nil {
		return err
	}
	for name, values := range e.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := e.client.Do(req)
	if err != nil {
		return e.withoutURL(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %s", path, resp.Status, strings.ToValidUTF8(string(answer), "�"))
	}
	return err
}

// withoutURL is a client's error without the URL, which may have a password.
func (e *Exporter) withoutURL(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return fmt.Errorf("send to %s: %w", e.URL.Host, u.Err)
	}
	return err
}
