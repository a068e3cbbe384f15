package routing

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestRoutes has routes of other kinds than host and path lead to an app.
func TestRoutes(t *testing.T) {
	t.Parallel()
	ports := loopback.FreePorts(t, 3)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--tcp", fmt.Sprintf("127.0.0.1:%d,%d", ports[0], ports[1]), "--https", fmt.Sprintf("127.0.0.1:%d", ports[2]))
	d.PushProbe("probe")
	t.Run("policies", func(t *testing.T) { callersAreKnown(d.On(t), t, ports[2]) })
	portsHold(d, t, ports) // it starts another process: no copy of d would do
}

// portsHold reaches an app by its own port: it outlives a kill of the
// daemon, waits for a port that another program has, and ends with its route.
func portsHold(d *e2e.Daemon, t *testing.T, ports []int) {
	t.Helper()
	route := d.TCPRoute("probe", ports[0])
	where := e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "domain": e2e.ToOne(d.First("/v3/domains?names=tcp.test"))}
	e2e.Answers(t, ports[0], "ready")

	d.Kill()
	other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	awaitRouterLog(d, "probe", fmt.Sprintf("TCP route: cannot listen at port %d, which is tried again", ports[0]))
	other.Close()
	e2e.Answers(t, ports[0], "ready")
	awaitRouterLog(d, "probe", fmt.Sprintf("TCP route: listening at port %d", ports[0]))

	other, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want := fmt.Sprintf("Port '%d' is not available. Try a different port or use a different domain.", ports[1])
	if err := d.Client().Call(t.Context(), "POST", "/v3/routes", e2e.Doc{"port": ports[1], "relationships": where}, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v; want %q", err, want)
	}
	d.API("DELETE", "/v3/routes/"+route, nil, nil)
	e2e.Answers(t, ports[0], "refused")
}

// awaitRouterLog waits until the router has said something in an app's log.
func awaitRouterLog(d *e2e.Daemon, app, text string) {
	d.T.Helper()
	awaitLog(d, app, "RTR", text)
}

// awaitLog waits until an app's log has a line with a text from a source.
func awaitLog(d *e2e.Daemon, app, source, text string) {
	d.T.Helper()
	guid := d.App(app)
	e2e.Eventually(d.T, time.Minute, func() string {
		var log struct {
			Envelopes struct {
				Batch []struct {
					Tags map[string]string
					Log  struct{ Payload []byte }
				}
			}
		}
		d.API("GET", "/api/v1/read/"+guid+"?envelope_types=LOG&limit=1000", nil, &log)
		for _, e := range log.Envelopes.Batch {
			if e.Tags["source_type"] == source && strings.Contains(string(e.Log.Payload), text) {
				return ""
			}
		}
		return source + " has not said: " + text
	})
}
