package podcell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/kube"
	"cupola/server/kube/apply"
	"cupola/server/kube/registry"
)

type doc = map[string]any

// cluster pretends to be one. What tests do to pods is what a kubelet would.
type cluster struct {
	mu      sync.Mutex
	objects map[string]map[string]kube.Object // by kind and name
	changes []chan func(apply.Following)      // to who follows pods or policies
	logs    map[string]*podLog
	down    error // of all requests
	noLog   error // of logs
	cutLogs int   // of as many logs, the first line is cut off
	refuses error // of objects of the kind refused
	refused string
	hidden  error    // of lists of policies
	made    []string // the kinds of objects, in order
	events  []kube.Object
	grace   map[string]time.Duration // of pods that were removed
	calls   map[string]int
	slow    time.Duration // of summaries
}

func newCluster() *cluster {
	return &cluster{objects: map[string]map[string]kube.Object{"Pod": {}, "Secret": {}, "Node": {}, "NetworkPolicy": {}}, refused: "Pod", logs: map[string]*podLog{}, grace: map[string]time.Duration{}, calls: map[string]int{}}
}

// call counts a request, and fails it while the cluster is down.
func (c *cluster) call(name string) error {
	c.calls[name]++
	return c.down
}

func (c *cluster) Create(_ context.Context, o kube.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("create"); err != nil {
		return err
	}
	if o.Kind() == c.refused && c.refuses != nil {
		return c.refuses
	}
	if c.objects[o.Kind()][o.Name()] != nil {
		return nil
	}
	c.made = append(c.made, o.Kind())
	c.objects[o.Kind()][o.Name()] = o
	c.changed(o)
	return nil
}

// changed sends an object to the watchers. The caller has mu.
func (c *cluster) changed(o kube.Object) {
	copied := maps.Clone(o)
	c.tell(o.Kind(), func(f apply.Following) { f.Changed(copied) })
}

// tell tells those who follow a kind.
func (c *cluster) tell(kind string, tell func(apply.Following)) {
	for _, to := range c.changes {
		to <- func(f apply.Following) {
			if f.Kind == kind {
				tell(f)
			}
		}
	}
}

func (c *cluster) Change(_ context.Context, kind, name string, change map[string]any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("change"); err != nil {
		return err
	}
	o := maps.Clone(c.objects[kind][name])
	if o == nil {
		return errors.New("not found")
	}
	if kind == "Secret" {
		o["data"] = change["data"]
	} else {
		meta := maps.Clone(o.Map("metadata"))
		meta["annotations"] = kube.Object(change).Map("metadata", "annotations")
		o["metadata"] = meta
	}
	c.objects[kind][name] = o
	c.changed(o)
	return nil
}

// Remove takes what has no process away at once. Others end when the test ends them.
func (c *cluster) Remove(_ context.Context, kind, name string, grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("remove"); err != nil {
		return err
	}
	o := c.objects[kind][name]
	switch {
	case o == nil:
	case kind == "Pod" && grace > 0 && len(o.Items("status", "containerStatuses")) > 0:
		c.grace[name] = grace
		c.set(name, func(pod kube.Object) {
			pod.Map("metadata")["deletionTimestamp"] = time.Now().Add(grace).UTC().Format(time.RFC3339)
		})
	default:
		c.take(kind, name)
	}
	return nil
}

// take takes an object away. The caller has mu.
func (c *cluster) take(kind, name string) {
	o := c.objects[kind][name]
	delete(c.objects[kind], name)
	if o != nil {
		c.tell(kind, func(f apply.Following) { f.Gone(o) })
	}
}

// set changes a pod. The caller has mu.
func (c *cluster) set(name string, change func(kube.Object)) {
	pod := maps.Clone(c.objects["Pod"][name])
	pod["metadata"] = maps.Clone(pod.Map("metadata"))
	pod["spec"] = maps.Clone(pod.Map("spec"))
	change(pod)
	c.objects["Pod"][name] = pod
	c.changed(pod)
}

func (c *cluster) Names(_ context.Context, kind, _ string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.objects[kind])), c.call("names")
}

func (c *cluster) Follow(ctx context.Context, f apply.Following) error {
	for c.isDown() {
		f.Reached(false, errors.New("no answer"))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.hidden != nil && f.Kind == "NetworkPolicy" {
		f.Reached(false, c.hidden)
		<-ctx.Done()
		return ctx.Err()
	}
	f.Begin()
	changes := make(chan func(apply.Following), 100)
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.objects[f.Kind]))
	if f.Kind != "Node" {
		c.changes = append(c.changes, changes)
	}
	c.mu.Unlock()
	f.All(all)
	f.Reached(true, nil)
	for {
		select {
		case change := <-changes:
			change(f)
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changes = slices.DeleteFunc(c.changes, func(other chan func(apply.Following)) bool { return other == changes })
			return ctx.Err()
		}
	}
}

func (c *cluster) isDown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down != nil
}

func (c *cluster) setDown(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
}

func (c *cluster) Events(context.Context, string) ([]kube.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["events"]++
	return c.events, nil
}

func (c *cluster) Summary(context.Context, string) ([]byte, error) {
	time.Sleep(c.slow)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["summary"]++
	return []byte(`{"pods": [{"podRef": {"name": "i-1"}, "cpu": {"usageNanoCores": 250000000, "usageCoreNanoSeconds": 3000000000}, "memory": {"workingSetBytes": 42}, "ephemeral-storage": {"usedBytes": 7}}]}`), nil
}

// Exec runs a program that says what it was asked for, and then what it is told, until it is told "bye".
func (c *cluster) Exec(_ context.Context, pod, container string, argv ...string) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("exec"); err != nil {
		return nil, err
	}
	inside, outside := net.Pipe()
	refuses := c.refuses
	go func() {
		defer inside.Close()
		if refuses != nil {
			return
		}
		fmt.Fprintf(inside, "%s %s %v: ", pod, container, argv)
		_, _ = io.Copy(inside, inside)
	}()
	return outside, nil
}

// podLog is the log of a container.
type podLog struct {
	lines []string
	ended bool
}

// Logs gives the lines that there are. The end of a container is that of its log.
func (c *cluster) Logs(ctx context.Context, pod, _ string, _ time.Time) (io.ReadCloser, error) {
	c.mu.Lock()
	c.calls["log"]++
	err, cut := c.noLog, c.cutLogs > 0
	c.cutLogs--
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		for n := 0; ctx.Err() == nil; {
			c.mu.Lock()
			l := c.logs[pod]
			var more []string
			ended := l == nil
			if l != nil {
				more, ended = l.lines[n:], l.ended
			}
			c.mu.Unlock()
			for _, line := range more {
				if cut {
					_, _ = io.WriteString(w, line[:len(line)-3])
					_ = w.Close()
					return
				}
				if _, err := io.WriteString(w, line+"\n"); err != nil {
					return
				}
				n++
			}
			if ended {
				_ = w.Close()
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		_ = w.CloseWithError(ctx.Err())
	}()
	return r, nil
}

// says writes a line to the log of a pod.
func (c *cluster) says(pod, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logs[pod] == nil {
		c.logs[pod] = &podLog{}
	}
	c.logs[pod].lines = append(c.logs[pod].lines, time.Now().UTC().Format(time.RFC3339Nano)+" "+text)
}

// begins makes the container of a pod run.
func (c *cluster) begins(pod string, started, ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(pod, func(o kube.Object) {
		o.Map("spec")["nodeName"] = "n"
		o["status"] = doc{"phase": "Running", "podIP": "10.0.0.9", "conditions": []any{doc{"type": "ContainersReady", "status": map[bool]string{true: "True", false: "False"}[ready]}},
			"containerStatuses": []any{doc{"name": "process", "started": started, "state": doc{"running": doc{"startedAt": time.Now().UTC().Format(time.RFC3339)}}}}}
	})
}

// exits ends the container of a pod. said is its termination message.
func (c *cluster) exits(pod string, code int64, said ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.logs[pod]; l != nil {
		l.ended = true
	}
	now := time.Now().UTC().Format(time.RFC3339)
	c.set(pod, func(o kube.Object) {
		o["status"] = doc{"phase": "Failed", "podIP": "10.0.0.9", "containerStatuses": []any{doc{"name": "process", "started": false,
			"state": doc{"terminated": doc{"exitCode": code, "reason": "Error", "message": strings.Join(said, ""), "startedAt": now, "finishedAt": now}}}}}
	})
}

// waits says why a pod's container does not start.
func (c *cluster) waits(pod, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(pod, func(o kube.Object) {
		o["status"] = doc{"phase": "Pending", "containerStatuses": []any{doc{"name": "process", "state": doc{"waiting": doc{"reason": reason, "message": "it is absent"}}}}}
	})
}

func (c *cluster) left() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, all := range c.objects {
		if kind != "NetworkPolicy" {
			names = append(names, slices.Collect(maps.Keys(all))...)
		}
	}
	slices.Sort(names)
	return names
}

// policies are what the NetworkPolicies are made of.
func (c *cluster) policies() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, o := range c.objects["NetworkPolicy"] {
		all = append(all, o.Text("metadata", "annotations", "cupola.dev/for"))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// world is a cell in a test, and what it tells.
type world struct {
	*Cell
	cluster *cluster
	pack    func(context.Context) (digest string, err error)
	end     context.CancelFunc
	ended   chan struct{}

	mu       sync.Mutex
	reported []string
	freed    int
}

// run makes a cell of a cluster, and runs it until the test ends.
func run(t *testing.T, c *cluster, dir string, change ...func(*Config)) *world {
	t.Helper()
	w := &world{cluster: c, ended: make(chan struct{}), pack: func(context.Context) (string, error) { return "sha256:ab", nil }}
	var err error
	pulls := &Pulls{Stacks: func() []string { return []string{"debian12"} }, Pack: func(ctx context.Context, _ lrp.RunInfo, tell func(string)) (string, error) {
		tell("stack debian12")
		return w.pack(ctx)
	},
		registry: registry.Registry{Address: "192.0.2.1:5443"}}
	cfg := Config{Presence: lrp.Cell{ID: "edge"}, Owner: "me", Dir: dir, Cluster: c, Pulls: pulls, Addresses: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.1")} }, Logs: w.log, Events: w.event, Freed: func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.freed++
	}}
	for _, f := range change {
		f(&cfg)
	}
	w.Cell, err = New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.SetReach(exampleReach())
	var ctx context.Context
	ctx, w.end = context.WithCancel(t.Context())
	go func() {
		defer close(w.ended)
		_ = w.Run(ctx)
	}()
	t.Cleanup(w.kill)
	return w
}

// kill ends the cell; its pods go on.
func (w *world) kill() {
	w.end()
	<-w.ended
}

func (w *world) log(l lrp.LogLine) { w.tell("%s: %s", l.Target.Source, l.Text) }

func (w *world) event(e lrp.Event) {
	text := string(e.Type)
	if e.Type == lrp.EventRunning {
		text += " at " + e.Address
	}
	if e.Type == lrp.EventExited {
		text += strings.TrimRight(fmt.Sprintf(" %d failed=%t stopped=%t %s", e.Exit.Code, e.Exit.Failed, e.Exit.Stopped, e.Exit.Reason), " ")
		if e.Result != nil {
			text += " with " + string(e.Result)
		}
		for _, b := range e.Outputs {
			text += " " + b.Name + "=" + b.Digest
		}
	}
	w.tell("event %s", strings.TrimSpace(text))
}

func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = append(w.reported, fmt.Sprintf(format, args...))
}

// take is what was told since it was asked last.
func (w *world) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.reported, "\n")
	w.reported = nil
	return text
}

// container is an instance of an app.
func container(guid string) lrp.Container {
	return lrp.Container{GUID: guid, Kind: lrp.KindInstance, ProcessGUID: "p", RunInfo: lrp.RunInfo{
		RootFS: "docker://registry.example.com/web:1", Action: lrp.Run{Path: "/web"}.Action(), MemoryMB: 64, LogRateLimitByte: -1, Env: []lrp.EnvVar{{Name: "A", Value: "b"}},
		Files: []lrp.File{{Path: "db/type", Content: []byte("x")}}, Log: lrp.LogTarget{GUID: "app", Source: "APP/PROC/WEB", Tags: map[string]string{"app_name": "shop"}}}}
}

func (c *cluster) called(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[name]
}
