package metrics

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/acme"
	"cupola/server/reconcile"
	"cupola/store"
)

// State is what is at one moment.
type State struct {
	store.Tally
	Cells    []lrp.CellUse
	Domains  []string // of Diego, that are fresh
	Routes   int      // of the router's table
	Budgets  []Budget
	Refused  map[string]int64 // clients of the listeners that were refused or cut off since the start, by reason
	DBBytes  int64
	WALBytes int64
	// Writes of the database that wait for their turn, and those since the start
	// that took longer than 250 ms while others waited.
	WaitingWrites    int
	LogStreams       int   // clients that read logs as they come
	DroppedEnvelopes int64 // that they lost
	LongWrites       int64
	Alerts           map[string]int     // that fire, by rule
	FailingTargets   int                // of alerts
	BackupsBehind    map[string]float64 // seconds that what changed is not there yet, by address
	ACME             *acme.Status       // nil: no certificates come from an ACME server
	Uptime           time.Duration
}

// Budget is the usage of a budget of the listeners.
type Budget struct {
	Name        string
	Used, Limit int
}

// stateCollector reads the current state at each scrape. Its metrics depend on
// that state, so it describes none.
type stateCollector struct {
	look  *atomic.Pointer[reconcile.Look]
	state func(context.Context) (State, error)
	log   *slog.Logger
}

// Describe describes nothing: the set of metrics changes.
func (c *stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics. Prometheus calls it in a goroutine that does not
// recover panics.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	fault.Func("metrics", func() { c.collect(out) })()
}

func (c *stateCollector) collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s, err := c.state(ctx)
	up := emitter{out, nil}
	if err != nil {
		c.log.WarnContext(ctx, "metrics were not gathered", "err", err)
		up.gauge("cupola_scrape_error", "Whether this scrape misses something.", 1)
		return
	}
	up.gauge("cupola_scrape_error", "Whether this scrape misses something.", 0)
	collectPlatform(up, s)
	collectBudgets(up, s)
	collectACME(up, s.ACME)
	collectAlerts(up, s)
	collectRouter(firehose(out, "router", "0", "gorouter"), s)
	for _, cell := range s.Cells {
		collectCell(firehose(out, "diego-cell", cell.ID, "rep"), cell)
	}
	bbs := firehose(out, "diego-api", "0", "bbs")
	for _, d := range s.Domains {
		bbs.gauge("domain_"+strings.NewReplacer("-", "_", ".", "_").Replace(d), "That the domain is fresh.", 1)
	}
	if look := c.look.Load(); look != nil {
		collectBBS(bbs, look)
	}
}

// emitter sends metrics that share labels.
type emitter struct {
	out    chan<- prometheus.Metric
	labels prometheus.Labels
}

// firehose returns a teller for an origin of the firehose exporter.
func firehose(out chan<- prometheus.Metric, job, id, origin string) emitter {
	l := labelsOf(job, origin)
	l["bosh_job_id"] = id
	return emitter{out, l}
}

func (t emitter) gauge(name, help string, value float64) {
	if origin, ok := t.labels["origin"]; ok {
		name = "firehose_value_metric_" + origin + "_" + name
	}
	t.emit(name, help, prometheus.GaugeValue, value)
}

func (t emitter) counter(name, help string, value float64) {
	t.emit(name, help, prometheus.CounterValue, value)
}

func (t emitter) emit(name, help string, kind prometheus.ValueType, value float64) {
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(name, help, nil, t.labels), kind, value)
	if err != nil {
		m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	t.out <- m
}

// with is the teller with one label more.
func (t emitter) with(name, value string) emitter {
	labels := prometheus.Labels{name: value}
	maps.Copy(labels, t.labels)
	return emitter{t.out, labels}
}

// gauges sends gauges with one help text.
func (t emitter) gauges(help string, values map[string]int) {
	for name, v := range values {
		t.gauge(name, help, float64(v))
	}
}

func collectRouter(t emitter, s State) {
	t.gauge("total_routes", "Routes with their endpoints' hosts and paths.", float64(s.Routes))
	t.gauge("uptime", "Seconds since the start.", s.Uptime.Seconds())
}

// collectACME sends what came of an ACME server.
func collectACME(t emitter, s *acme.Status) {
	if s == nil {
		return
	}
	for state, n := range map[string]int{"valid": s.Valid, "missing": s.Missing, "failing": s.Failing} {
		t.with("state", state).gauge("cupola_acme_names", "Names that have a valid certificate by ACME, that have none, and whose last order failed.", float64(n))
	}
	t.counter("cupola_acme_failures_total", "Orders of certificates that failed since the start.", float64(s.Failed))
	if !s.FirstEnd.IsZero() {
		t.gauge("cupola_acme_first_expiry_timestamp_seconds", "When the first of the certificates by ACME expires.", float64(s.FirstEnd.Unix()))
	}
}

// collectAlerts sends what fires. A rule of which nothing fires has no sample.
func collectAlerts(t emitter, s State) {
	for rule, n := range s.Alerts {
		t.with("rule", rule).gauge("cupola_alerts_firing", "Alerts that fire, by rule.", float64(n))
	}
	t.gauge("cupola_alert_targets_failing", "Targets of alerts that take no messages.", float64(s.FailingTargets))
	for to, seconds := range s.BackupsBehind {
		t.with("to", to).gauge("cupola_backup_behind_seconds", "Since what was acknowledged by the daemon was last all at an address of --backup-to, with what changed since the last backup.", seconds)
	}
}

// collectBudgets sends the budgets of connections and requests. Gorouter's
// counter is of requests that got no connection to an instance.
func collectBudgets(t emitter, s State) {
	for _, b := range s.Budgets {
		of := t.with("budget", b.Name)
		of.gauge("cupola_listener_used", "Connections or requests that a budget has in use.", float64(b.Used))
		of.gauge("cupola_listener_limit", "Connections or requests that a budget has.", float64(b.Limit))
	}
	for reason, n := range s.Refused {
		t.with("reason", reason).counter("cupola_listener_refused_total", "Clients that were refused or cut off, by reason.", float64(n))
	}
	o := counterOpts("router", "gorouter", "backend_exhausted_conns", "Requests refused because of a limit of connections.")
	emitter{t.out, o.ConstLabels}.counter(o.Name, o.Help, float64(s.Refused["app"]+s.Refused["address"]+s.Refused["connections"]))
}

// collectCell sends a cell's metrics in Diego's unit, MiB; remaining capacity is
// what the auction sees.
func collectCell(t emitter, u lrp.CellUse) {
	t.gauges("What a cell has, in MiB and containers.", map[string]int{
		"capacity_total_memory": u.MemoryMB, "capacity_total_disk": u.DiskMB, "capacity_total_containers": u.Containers,
		"capacity_allocated_memory": u.UsedMemoryMB, "capacity_allocated_disk": u.UsedDiskMB,
		"capacity_remaining_memory": max(u.MemoryMB-u.UsedMemoryMB, 0), "capacity_remaining_disk": max(u.DiskMB-u.UsedDiskMB, 0),
		"capacity_remaining_containers": max(u.Containers-u.UsedContainers, 0), "container_count": u.UsedContainers,
	})
	t.gauge("garden_health_check_failed", "0: there is no container manager that could fail apart from the daemon.", 0)
}

func collectBBS(t emitter, k *reconcile.Look) {
	t.gauges("As the control loop last saw it.", map[string]int{
		"lr_ps_desired": k.Desired, "lr_ps_missing": k.Missing, "lr_ps_extra": k.Extra,
		"lr_ps_running": k.Running, "lr_ps_claimed": k.Claimed, "lr_ps_unclaimed": k.Unclaimed,
		"crashed_actual_lr_ps": k.Crashed, "crashing_desired_lr_ps": k.Crashing,
		"tasks_pending": k.TasksPending, "tasks_running": k.TasksRunning, "tasks_completed": k.TasksCompleted,
	})
	t.gauge("convergence_lrp_duration", "How long the last look took, in nanoseconds.", float64(k.Took))
}

// collectPlatform sends Cloud Controller's metrics and the daemon's.
func collectPlatform(t emitter, s State) {
	t.gauges("As Cloud Controller counts it.", map[string]int{
		"cc_running_tasks_total": s.RunningTasks, "cc_users_total": s.Users,
		"cc_deployments_in_progress_total": s.ActiveDeployments, "cc_job_queues_length_total": s.WaitingJobs,
	})
	t.gauge("cc_running_tasks_memory_bytes", "Memory that running tasks may use.", float64(s.RunningTasksMB)*(1<<20))
	t.gauges("How many there are.", map[string]int{
		"cupola_organizations": s.Orgs, "cupola_spaces": s.Spaces, "cupola_apps": s.Apps, "cupola_apps_started": s.StartedApps,
		"cupola_routes": s.Tally.Routes, "cupola_service_instances": s.ServiceInstances, "cupola_stagings": s.Stagings,
	})
	t.gauge("cupola_log_streams", "Clients that read logs as they come.", float64(s.LogStreams))
	t.counter("cupola_log_stream_dropped_envelopes_total", "Envelopes that clients lost because they read too slowly.", float64(s.DroppedEnvelopes))
	t.gauge("cupola_db_size_bytes", "Of the database, without its log.", float64(s.DBBytes))
	t.gauge("cupola_db_wal_bytes", "Of the database's log.", float64(s.WALBytes))
	t.gauge("cupola_db_writes_waiting", "Writes that wait for their turn.", float64(s.WaitingWrites))
	t.counter("cupola_db_long_writes_total", "Writes that held up others for more than 250 ms.", float64(s.LongWrites))
}
