package images

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cupola/server/kube"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestAppOnKubernetesCellByTunnel reaches pods that have no route to this machine: with bodies of both directions, websockets, a TCP
// route, shells, after the end of the agent and of the daemon. The agent leaves with the last app. Where pods do not answer at their
// addresses any longer, a cell that was told nothing finds the tunnel.
func TestAppOnKubernetesCellByTunnel(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	account, registry := n.Account(), freeAddress(t, n.Host())
	port := loopback.FreePorts(t, 1)[0]
	flags := func(mode string) []string {
		return []string{"--tcp", fmt.Sprintf("127.0.0.1:%d", port), "--kubernetes", "edge=" + account + ",tunnel=" + mode, "--kubernetes-registry", registry}
	}
	d := e2e.StartDaemon(t, binary, flags("auto")...)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	placeOn(d, "edge")
	d.PushProbe("probe")
	if agents := agentsOf(n); len(agents) > 0 {
		t.Errorf("there is an agent, but pods answer at their addresses: %v", agents)
	}
	n.Hide()
	d.Kill()
	d.Start()
	d.Running("probe", "web", 1)
	d.Answers("probe", "ready")
	wasLogged(d, "they are reached by the tunnel")

	d.Kill()
	d.Flags = append(d.Flags[:len(d.Flags)-6], flags("always")...)
	d.Start()
	d.Answers("probe", "ready")
	d.TCPRoute("probe", port)
	e2e.Answers(t, port, "ready")
	sendsBack(t, d)
	for _, o := range agentsOf(n) {
		n.DeleteOne("v1", "Pod", o.Name())
	}
	d.Answers("probe", "ready")
	wasLogged(d, "there is no tunnel into the cluster")
	sendsBack(t, d)
	e2e.Answers(t, port, "ready")
	showsLoss(d, n)
	was := agentsOf(n)
	d.Kill()
	d.Start()
	sendsBack(t, d)
	if is := agentsOf(n); len(was) != 1 || len(is) != 1 || was[0].Text("metadata", "uid") != is[0].Text("metadata", "uid") {
		t.Errorf("the next daemon has other agents: %d, then %d", len(was), len(is))
	}
	session := d.NewSession(d.Enter(0))
	if out, err := session.Output("echo entered"); err != nil || string(out) != "entered\n" {
		t.Errorf("got %q, %v", out, err)
	}
	d.Deleted("probe")
	n.Until("nothing is left of the app and the agent", func() bool {
		return len(n.List("v1", "Pod"))+len(n.List("v1", "Secret"))+len(policiesOf(n)) == 0
	})
}

// showsLoss ends the tunnel, whose agent cannot be made again: the cells say so until it can.
func showsLoss(d *e2e.Daemon, n *kubetest.Node) {
	d.T.Helper()
	resume := n.Pause("scheduler")
	defer resume()
	agent := agentsOf(n)[0].Name()
	n.DeleteOne("v1", "Pod", agent)
	lists := func(want bool, all ...string) {
		d.T.Helper()
		e2e.Eventually(d.T, kubetest.Patience, func() string {
			out, err := d.Run("cells")
			for _, text := range all {
				if err != nil || strings.Contains(out, text) != want {
					return fmt.Sprintf("%v, want %t of %q\n%s", err, want, text, out)
				}
			}
			return ""
		})
	}
	lists(true, "edge: there is no tunnel into the cluster, so requests do not reach its pods: ", "kubectl describe pod "+agent)
	finds(d, "fail", "there is no tunnel into the cluster", "kubectl describe pod "+agent)
	resume()
	lists(false, "there is no tunnel", "kubectl describe")
	d.Answers("probe", "ready")
	finds(d, "OK", "is open")
}

// finds wants doctor to say something of the tunnel. It says more of this machine.
func finds(d *e2e.Daemon, level string, texts ...string) {
	d.T.Helper()
	out, _ := d.Run("doctor", "--data-dir", d.Dir)
	if !regexp.MustCompile(`(?m)^` + level + ` +tunnel edge +` + texts[0]).MatchString(out) {
		d.T.Errorf("doctor does not say %q of the tunnel that it %s:\n%s", level, texts[0], out)
	}
	for _, text := range texts[1:] {
		if !strings.Contains(out, text) {
			d.T.Errorf("doctor does not say %q:\n%s", text, out)
		}
	}
}

// agentsOf are the agents' pods.
func agentsOf(n *kubetest.Node) []kube.Object {
	return slices.DeleteFunc(n.List("v1", "Pod"), func(o kube.Object) bool { return !kube.IsAgent(o) })
}

func wasLogged(d *e2e.Daemon, text string) {
	d.T.Helper()
	e2e.Eventually(d.T, kubetest.Patience, func() string {
		if strings.Contains(d.Log.String(), text) {
			return ""
		}
		return fmt.Sprintf("the daemon does not say %q", text)
	})
}

// sendsBack sends the app a megabyte, which it sends back, and a word by a websocket.
func sendsBack(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	d.Answers("probe", "ready")
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+d.Addr+"/back", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "probe.localhost"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %s, %d bytes, %v; want the %d that were sent", res.Status, len(got), err, len(sent))
	}
	c, _, err := websocket.Dial(t.Context(), "ws://"+d.Addr+"/websocket", &websocket.DialOptions{Host: "probe.localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v; want the echo", got, err)
	}
}
