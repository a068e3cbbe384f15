package metrics

import (
	"net/http"
	"sync"
	"time"

	"cupola/server/reconcile"
)

// Request is a request to an app that is over.
type Request struct {
	Status int  // 0: none was sent
	Routed bool // there was a route
	Took   time.Duration
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
	if !r.Routed {
		m.rejected.Inc()
	}
	m.latency.Observe(r.Took.Seconds())
	m.latencyMean.add(r.Took)
}

// API counts the requests of the API.
func (m *Metrics) API(next http.Handler) http.Handler {
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
