package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cupola/runtime/fault"
	"cupola/server/bulkhead"
	"cupola/server/otlp"
	"cupola/server/reconcile"
)

// Config is what a Metrics is made of.
type Config struct {
	Environment string // the label environment of all: the domain
	// State is asked at each scrape, and must take milliseconds at most.
	State   func(context.Context) (State, error)
	Version string // of cupola
	// Export says where metrics and traces are sent; nil: nowhere.
	Export *otlp.Config
	Log    *slog.Logger
}

// Metrics counts events and exports them with the current state. It is safe
// for concurrent use.
type Metrics struct {
	handler  http.Handler
	exporter *otlp.Exporter // nil: nothing is sent
	causes   causes

	requests, badGateways, rejected prometheus.Counter
	classes                         [6]prometheus.Counter // by the first digit of the status; 0: none was sent
	latency                         prometheus.Histogram
	latencyMean                     *mean
	byApp                           appCounts
	apiOutstanding                  prometheus.Gauge
	apiCompleted                    prometheus.Counter
	auctions, auctionsFailed        prometheus.Counter
	taskAuctions, taskFailed        prometheus.Counter
	stagings                        prometheus.Counter
	look                            atomic.Pointer[reconcile.Look] // the last
	convergences                    prometheus.Counter
}

// scrapeTimeout bounds what a scrape takes.
const scrapeTimeout = 5 * time.Second

// New makes the metrics, all at zero.
func New(c Config) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{latencyMean: &mean{}}
	env := prometheus.WrapRegistererWith(prometheus.Labels{"environment": c.Environment}, registry)
	m.registerRouter(env)
	m.registerPlatform(env)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	env.MustRegister(&stateCollector{&m.look, c.State, c.Log}, panics{})
	if c.Export != nil {
		export := *c.Export
		export.Gatherer, export.Log, export.Resource = registry, c.Log, resource(c)
		m.exporter = otlp.New(export)
	}
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 2 * scrapeTimeout})
	return m
}

// panics exports the number of recovered panics.
type panics struct{}

var panicsDesc = prometheus.NewDesc("cupola_panics_total", "Panics that ended one request, container or loop, and not the daemon, by its part.", []string{"part"}, nil)

func (panics) Describe(ch chan<- *prometheus.Desc) { ch <- panicsDesc }

func (panics) Collect(ch chan<- prometheus.Metric) {
	for part, n := range fault.Counts() {
		ch <- prometheus.MustNewConstMetric(panicsDesc, prometheus.CounterValue, float64(n), part)
	}
}

// counterOpts returns the options of a counter of the firehose exporter.
func counterOpts(job, origin, name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Name: "firehose_counter_event_" + origin + "_" + name + "_total", Help: help, ConstLabels: labelsOf(job, origin)}
}

// labelsOf are the labels that the firehose exporter has on all of its metrics.
func labelsOf(job, origin string) prometheus.Labels {
	return prometheus.Labels{"bosh_deployment": deployment, "bosh_job_name": job, "bosh_job_id": "0", "bosh_job_ip": ip, "origin": origin}
}

// What there is instead of BOSH's words.
const (
	deployment = "cf"
	ip         = "127.0.0.1"
)

func (m *Metrics) registerRouter(r prometheus.Registerer) {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(counterOpts("router", "gorouter", name, help))
		r.MustRegister(c)
		return c
	}
	m.requests = counter("total_requests", "Requests to apps.")
	m.badGateways = counter("bad_gateways", "Requests whose endpoint failed: 502.")
	m.rejected = counter("rejected_requests", "Requests to no route.")
	m.classes[0] = counter("responses_xxx", "Requests that were answered with none of the other classes.")
	for class := 1; class < len(m.classes); class++ {
		m.classes[class] = counter("responses_"+strconv.Itoa(class)+"_xx", "Requests by the class of their answer.")
	}
	m.latency = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "cupola_router_request_duration_seconds", Help: "How long requests to apps took.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}})
	r.MustRegister(m.latency)
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "firehose_value_metric_gorouter_latency", ConstLabels: unit("router", "gorouter", "ms"),
		Help: "Mean time of requests since the last scrape, in milliseconds."}, func() float64 { return m.latencyMean.reset().Seconds() * 1000 }))
}

func unit(job, origin, unit string) prometheus.Labels {
	l := labelsOf(job, origin)
	l["unit"] = unit
	return l
}

func (m *Metrics) registerPlatform(r prometheus.Registerer) {
	m.auctions = prometheus.NewCounter(counterOpts("scheduler", "auctioneer", "auctioneer_lrp_auctions_started", "Instances that a cell was found for."))
	m.auctionsFailed = prometheus.NewCounter(counterOpts("scheduler", "auctioneer", "auctioneer_lrp_auctions_failed", "Times that no cell had room for an instance."))
	m.taskAuctions = prometheus.NewCounter(counterOpts("scheduler", "auctioneer", "auctioneer_task_auctions_started", "Tasks and stagings that a cell was found for."))
	m.taskFailed = prometheus.NewCounter(counterOpts("scheduler", "auctioneer", "auctioneer_task_auctions_failed", "Times that no cell had room for a task or a staging."))
	m.convergences = prometheus.NewCounter(counterOpts("diego-api", "bbs", "convergence_lrp_runs", "Times that what runs was held against what is desired."))
	m.stagings = prometheus.NewCounter(prometheus.CounterOpts{Name: "cc_staging_requests_total", Help: "Stagings that began."})
	m.apiOutstanding = prometheus.NewGauge(prometheus.GaugeOpts{Name: "cc_requests_outstanding_total", Help: "Requests to the API that are under way."})
	m.apiCompleted = prometheus.NewCounter(prometheus.CounterOpts{Name: "cc_requests_completed_total", Help: "Requests to the API that were answered."})
	r.MustRegister(m.auctions, m.auctionsFailed, m.taskAuctions, m.taskFailed, m.convergences, m.stagings, m.apiOutstanding, m.apiCompleted)
}

// maxIdle bounds connections without a scrape under way: who scrapes without a
// password may be anybody. Those with one end by the time-outs.
const maxIdle = 16

// Serve answers scrapes of /metrics on l until ctx ends.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	bulkhead.Watch(srv, maxIdle)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fault.Listener("metrics", l)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
