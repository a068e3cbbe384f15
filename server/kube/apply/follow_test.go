package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cupola/server/kube"
)

// openAt is the cluster whose API server is h.
func openAt(t *testing.T, h http.Handler) *Cluster {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return openWith(t, fmt.Sprintf(kubeconfig, server.URL))
}

// openWith is the cluster of a kubeconfig.
func openWith(t *testing.T, text string) *Cluster {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Config{Kubeconfig: config})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func podDoc(name, version string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "resourceVersion": version}}
}

// changing serves pods: a list in two pages, then changes, until it says that it does not know
// any longer what happened since.
type changing struct {
	t       *testing.T
	lists   atomic.Int32
	watches atomic.Int32
}

func (s *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	write := func(v any) {
		_ = json.NewEncoder(w).Encode(v)
		w.(http.Flusher).Flush()
	}
	list := func(next string, pods ...any) {
		write(map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{"resourceVersion": "5", "continue": next}, "items": pods})
	}
	switch {
	case r.URL.Path != "/api/v1/namespaces/nats/pods" || q.Get("labelSelector") != "a=b":
		s.t.Errorf("asked for %s", r.URL)
	case q.Get("watch") == "" && q.Get("continue") == "":
		s.lists.Add(1)
		list("more", podDoc("one", "3"))
	case q.Get("watch") == "":
		list("", podDoc("two", "4"))
	default:
		s.watch(q.Get("resourceVersion"), r, write)
	}
}

// watch answers the nth watch.
func (s *changing) watch(version string, r *http.Request, write func(any)) {
	event := func(kind string, o map[string]any) { write(map[string]any{"type": kind, "object": o}) }
	switch n := s.watches.Add(1); {
	case n == 1 && version == "5":
		event("ADDED", podDoc("three", "6"))
		event("BOOKMARK", podDoc("", "9"))
	case n == 2 && version == "9":
		event("MODIFIED", podDoc("one", "10"))
		event("DELETED", podDoc("two", "11"))
		event("ERROR", map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"})
	case n == 3 && version == "5":
		<-r.Context().Done()
	default:
		s.t.Errorf("watch %d is from version %q", n, version)
	}
}

func TestFollow(t *testing.T) {
	s := &changing{t: t}
	c := openAt(t, s)
	var told []string
	ctx, end := context.WithCancel(t.Context())
	defer end()
	lists := 0
	err := c.Follow(ctx, Following{Kind: "Pod", Selector: "a=b",
		Begin: func() { told = append(told, "begin") },
		All: func(all []kube.Object) {
			for _, o := range all {
				told = append(told, "has "+o.Name())
			}
			if lists++; lists == 2 {
				end()
			}
		},
		Changed: func(o kube.Object) { told = append(told, o.Name()+" at "+o.Version()) },
		Gone:    func(o kube.Object) { told = append(told, o.Name()+" is gone") },
		Reached: func(ok bool, err error) {
			if !ok && ctx.Err() == nil {
				t.Errorf("the cluster counts as unreachable: %v", err)
			}
		},
	})
	const want = "begin, has one, has two, three at 6, one at 10, two is gone, begin, has one, has two"
	if got := strings.Join(told, ", "); got != want || err == nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// A cluster that does not answer is asked again, and said to be unreachable.
func TestFollowUnreachable(t *testing.T) {
	var asked atomic.Int32
	c := openAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []}`)
	}))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	failed := 0
	_ = c.Follow(ctx, Following{Kind: "Node", Begin: func() {}, All: func([]kube.Object) {}, Reached: func(ok bool, _ error) {
		if ok {
			end()
			return
		}
		failed++
	}})
	if failed != 2 {
		t.Errorf("the cluster counted as unreachable %d times; want 2", failed)
	}
}

// A watch that ends at once is begun again ever later, unless it told something.
func TestNextRetry(t *testing.T) {
	wait := minRetry
	for range 10 {
		wait = nextRetry(wait, false)
	}
	if wait != maxRetry {
		t.Errorf("after 10 watches without an event the wait is %v; want %v", wait, maxRetry)
	}
	if wait = nextRetry(wait, true); wait != minRetry {
		t.Errorf("after a watch with an event the wait is %v; want %v", wait, minRetry)
	}
}

func TestLogs(t *testing.T) {
	c := openAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path != "/api/v1/namespaces/nats/pods/a/log" || q.Get("container") != "process" || q.Get("sinceTime") != "2026-01-02T03:04:05Z" || q.Get("timestamps") != "true" || q.Get("follow") != "true" {
			http.Error(w, "no such log", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "a line\n")
	}))
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	log, err := c.Logs(t.Context(), "a", "process", at)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if text, err := io.ReadAll(log); err != nil || string(text) != "a line\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if other, err := c.Logs(t.Context(), "b", "process", at); err == nil || !strings.Contains(err.Error(), "no such log") {
		if other != nil {
			_ = other.Close()
		}
		t.Errorf("got %v; want the API server's answer", err)
	}
}

// TestLogsShareConnections follows the logs of many pods at once, as a daemon does that adopts them: on a few connections.
func TestLogsShareConnections(t *testing.T) {
	const pods = 500
	var made atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a line\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	config := strings.Replace(fmt.Sprintf(kubeconfig, server.URL), "server:", "insecure-skip-tls-verify: true, server:", 1)
	c := openWith(t, config)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var group sync.WaitGroup
	for range pods {
		group.Go(func() {
			log, err := c.Logs(ctx, "a", "process", time.Time{})
			if err == nil {
				_, err = io.ReadFull(log, make([]byte, len("a line\n")))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	// Those that ask at once when a connection is full each open one: more of them on a busy machine.
	if n := made.Load(); n > pods/2 {
		t.Errorf("%d logs are followed on %d connections; want %d at most", pods, n, pods/2)
	}
}
