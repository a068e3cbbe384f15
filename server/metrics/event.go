package metrics

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"cupola/server/reconcile"
)

// Request is a request to an app that is over.
type Request struct {
	Status  int    // 0: none was sent
	AppGUID string // "": there was no route
	Took    time.Duration
}

// Requested counts a request to an app.
func (m *Metrics) Requested(r Request) {
	m.requests.Inc()
	class := r.Status / 100
	if class < 1 || class >= len(m.classes) {
		class = 0
	}
	m.classes[class].Inc()
	if r.Status == http.StatusBadGateway {
		m.badGateways.Inc()
	}
	if r.AppGUID == "" {
		m.rejected.Inc()
	} else {
		m.byApp.add(r.AppGUID, r.Took)
	}
	m.latency.Observe(r.Took.Seconds())
	m.latencyMean.add(r.Took)
}

// ByApp returns the number of requests since the start, by the app's GUID.
func (m *Metrics) ByApp() map[string]int64 { return m.byApp.all() }

// OfApp returns the number of requests to an app since the start, and how long they took together.
func (m *Metrics) OfApp(guid string) (count int64, took time.Duration) { return m.byApp.of(guid) }

// appCounts counts requests by app.
type appCounts struct {
	counts sync.Map // GUID → *appCount
	apps   atomic.Int64
}

type appCount struct{ requests, nanoseconds atomic.Int64 }

// maxApps bounds the apps that are counted, as those of deleted apps stay: beyond it,
// all begin at zero again.
const maxApps = 20_000

func (c *appCounts) add(app string, took time.Duration) {
	n, known := c.counts.Load(app)
	if !known {
		if c.apps.Add(1) > maxApps {
			c.counts.Clear()
			c.apps.Store(1)
		}
		n, _ = c.counts.LoadOrStore(app, &appCount{})
	}
	count := n.(*appCount) //nolint:forcetypeassert // nothing else is stored
	count.requests.Add(1)
	count.nanoseconds.Add(int64(took))
}

func (c *appCounts) of(app string) (int64, time.Duration) {
	n, known := c.counts.Load(app)
	if !known {
		return 0, 0
	}
	count := n.(*appCount) //nolint:forcetypeassert // nothing else is stored
	return count.requests.Load(), time.Duration(count.nanoseconds.Load())
}

func (c *appCounts) all() map[string]int64 {
	all := map[string]int64{}
	c.counts.Range(func(app, n any) bool {
		all[app.(string)] = n.(*appCount).requests.Load() //nolint:forcetypeassert // as stored
		return true
	})
	return all
}

// API counts the requests of the API.
func (m *Metrics) API(next http.Handler) http.Handler {
	next = m.tracedAPI(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.apiOutstanding.Inc()
		defer m.apiCompleted.Inc()
		defer m.apiOutstanding.Dec()
		next.ServeHTTP(w, r)
	})
}

// Converged counts a pass of the control loop, and keeps its state for
// scrapes.
func (m *Metrics) Converged(k reconcile.Look) {
	m.look.Store(&k)
	m.convergences.Inc()
	m.auctions.Add(float64(k.Placed))
	m.auctionsFailed.Add(float64(k.Denied))
	m.taskAuctions.Add(float64(k.TasksPlaced))
	m.taskFailed.Add(float64(k.TasksDenied))
	m.stagings.Add(float64(k.Stagings))
}

// mean is the mean of what was added since the last take.
type mean struct {
	mu  sync.Mutex
	sum time.Duration
	n   int64
	was time.Duration // when nothing was added since
}

func (m *mean) add(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sum, m.n = m.sum+d, m.n+1
}

func (m *mean) reset() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n > 0 {
		m.was = m.sum / time.Duration(m.n)
	}
	m.sum, m.n = 0, 0
	return m.was
}
