package restart

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// asks is the answer of a listener to somebody without a token, on a connection of its own.
func asks(address, path, agent string) string {
	req, err := http.NewRequest("GET", "http://"+address+path, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("User-Agent", agent)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(string(text)))
}

// A load balancer sees that the daemon is ready at each listener of apps, and that it drains,
// while it still leads to apps.
func TestHealthForLoadBalancers(t *testing.T) {
	t.Parallel()
	segment := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--segment-router", "red="+segment, "--drain-wait", "5s")
	d.PushProbe("probe")
	d.Answers("probe", "ready")
	for address, asked := range map[string][2]string{d.Addr: {"/healthz", "curl"}, d.Addr + "/": {"", "HTTP-Monitor/1.1"}, segment: {"/healthz", ""}, segment + "/any": {"", "HTTP-Monitor/1.1"}} {
		if got := asks(address, asked[0], asked[1]); got != "200 ok" {
			t.Errorf("%s%s as %q: got %s; want 200 ok", address, asked[0], asked[1], got)
		}
	}
	if got := asks(segment, "/", "curl"); !strings.HasPrefix(got, "404") {
		t.Errorf("the router of a segment at its address: got %s; want 404", got)
	}
	if err := d.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{d.Addr, segment} {
		e2e.Eventually(t, 4*time.Second, func() string {
			if got := asks(address, "/healthz", ""); got != "503 draining" {
				return got
			}
			return ""
		})
	}
	if status, _, err := d.Get("probe.localhost", "/"); err != nil || status != http.StatusOK {
		t.Errorf("an app of a daemon that waits for load balancers: got %d, %v", status, err)
	}
	if err := d.Cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		if got := asks(d.Addr, "/healthz", ""); got != "200 ok" {
			return got
		}
		return ""
	})
}
