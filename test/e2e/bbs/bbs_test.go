package bbs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// bbsClient is a client of the BBS API with what `cupola credentials --bbs`
// tells.
type bbsClient struct {
	*e2e.Daemon
	url  string
	env  map[string]string // what was told
	http *http.Client
}

var exportLine = regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`)

func bbs(d *e2e.Daemon) *bbsClient {
	d.T.Helper()
	var said bytes.Buffer
	ask := exec.Command(d.Binary, "credentials", "--bbs", "--data-dir", d.Dir)
	ask.Stderr = &said
	out, err := ask.Output()
	if err != nil {
		d.T.Fatalf("%v\n%s", err, &said)
	}
	env := map[string]string{}
	for _, m := range exportLine.FindAllStringSubmatch(string(out), -1) {
		env[m[1]] = m[2]
	}
	pair, err := tls.LoadX509KeyPair(env["CLIENT_CERT_FILE"], env["CLIENT_KEY_FILE"])
	if err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(env["CA_CERT_FILE"])
	if err != nil {
		d.T.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &bbsClient{d, env["BBS_URL"], env, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}}}}
}

// ask makes a call and decodes the answer.
func (b *bbsClient) ask(path string, req, into proto.Message) {
	b.T.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		b.T.Fatal(err)
	}
	res, err := b.http.Post(b.url+path, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	if err := proto.Unmarshal(answer, into); err != nil {
		b.T.Fatal(err)
	}
}

// must makes a call that has to go well.
func (b *bbsClient) must(path string, req proto.Message) {
	b.T.Helper()
	res := &bbspb.LifecycleResponse{}
	if b.ask(path, req, res); res.Error != nil {
		b.T.Fatalf("%s: %v", path, res.Error)
	}
}

func (b *bbsClient) actuals(guid string) []*bbspb.ActualLRP {
	b.T.Helper()
	res := &bbspb.ActualLRPsResponse{}
	b.ask("/v1/actual_lrps/list", &bbspb.ActualLRPsRequest{ProcessGuid: guid}, res)
	return res.ActualLrps
}

// runningLRPs waits until exactly n instances run, and gives them.
func (b *bbsClient) runningLRPs(guid string, n int) []*bbspb.ActualLRP {
	b.T.Helper()
	var all []*bbspb.ActualLRP
	e2e.Eventually(b.T, 60*time.Second, func() string {
		all = b.actuals(guid)
		for _, a := range all {
			if a.State != "RUNNING" || !a.GetRoutable() {
				return fmt.Sprintf("%v", all)
			}
		}
		if len(all) != n {
			return fmt.Sprintf("%d instances, want %d: %v", len(all), n, all)
		}
		return ""
	})
	return all
}

// names reads a stream and gathers the names of those events that have the text
// in them.
func (b *bbsClient) names(path, text string) func() []string {
	b.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", b.url+path, nil)
	if err != nil {
		b.T.Fatal(err)
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { cancel(); res.Body.Close() })
	var mu sync.Mutex
	var names []string
	go func() {
		name := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if begins, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = begins
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if event, err := base64.StdEncoding.DecodeString(data); ok && err == nil && strings.Contains(string(event), text) {
				mu.Lock()
				names = append(names, name)
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return names
	}
}

// probeTar serves an archive with testdata/probe in it.
func probeTar(t *testing.T) string {
	t.Helper()
	return programTar(t, "probe")
}

// programTar serves a program of testdata.
func programTar(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	e2e.CopyProgram(t, e2e.Program(t, e2e.Repository(t), "./test/e2e/testdata/"+name), dir, name)
	if out, err := exec.Command("tar", "-czf", filepath.Join(dir, name+".tgz"), "-C", dir, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(srv.Close)
	return srv.URL + "/" + name + ".tgz"
}

func shell(script string) *bbspb.Action {
	return &bbspb.Action{Run: &bbspb.Run{Path: "/bin/sh", Args: []string{"-c", script}, User: "vcap"}}
}

func tags(logGUID string) map[string]*bbspb.MetricTagValue {
	return map[string]*bbspb.MetricTagValue{"source_id": {Static: logGUID}, "instance": {Dynamic: bbspb.MetricTagDynamic_METRIC_TAG_INDEX}}
}

// TestBBS lets a client of Diego's run LRPs and tasks in real containers.
func TestBBS(t *testing.T) {
	t.Parallel()
	port := loopback.FreePorts(t, 1)[0]
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--bbs", "127.0.0.1:0", "--instance-cert-life", "24s", "--tcp", fmt.Sprintf("127.0.0.1:%d", port))
	b := bbs(d)
	b.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "tests"})
	var rotated func(*bbsClient)
	archive := probeTar(t)
	t.Run("identity", func(t *testing.T) { rotated = bbs(d.On(t)).certificatesRotate(archive) })
	t.Run("stack", func(t *testing.T) { bbs(d.On(t)).stackStays() })
	t.Run("LRP", func(t *testing.T) {
		b := bbs(d.On(t))
		defer func() { d.Cmd = b.Cmd }() // it kills the daemon and starts another
		b.lrpLives()
	})
	t.Run("crash", func(t *testing.T) { bbs(d.On(t)).lrpCrashes() })
	t.Run("task", func(t *testing.T) { bbs(d.On(t)).taskCallsBack() })
	t.Run("cancel", func(t *testing.T) { bbs(d.On(t)).taskIsCancelled() })
	t.Run("routes", func(t *testing.T) { bbs(d.On(t)).routesLead(archive, port) })
	t.Run("tls", func(t *testing.T) { bbs(d.On(t)).tlsPorts(archive) })
	t.Run("ssh", func(t *testing.T) { bbs(d.On(t)).sshEnters() })
	t.Run("apps", func(t *testing.T) { bbs(d.On(t)).appsAreShown() })
	if rotated != nil {
		t.Run("rotated", func(t *testing.T) { rotated(bbs(d.On(t))) })
	}
}

// lrpLives desires an LRP with a setup, a check, a route and a log, scales it,
// survives a kill of the daemon, moves its route and removes it.
func (b *bbsClient) lrpLives() {
	events := b.names("/v1/events/lrp_instances.r1", "")
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: &bbspb.DesiredLRP{
		ProcessGuid: "web", Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64, DiskMb: 64,
		Setup:  &bbspb.Action{Download: &bbspb.Download{From: probeTar(b.T.(*testing.T)), To: ".", User: "vcap"}},
		Action: &bbspb.Action{Run: &bbspb.Run{Path: "/home/vcap/probe", User: "vcap", Env: []*bbspb.Env{{Name: "PORT", Value: "8080"}}}},
		Ports:  []uint32{8080}, LogSource: "WEB", LogGuid: "web-log", MetricTags: tags("web-log"),
		CheckDefinition: &bbspb.CheckDefinition{Checks: []*bbspb.Check{{Tcp: &bbspb.TCPCheck{Port: 8080}}}},
		Routes:          &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(`[{"hostnames":["web.bbs.test"],"port":8080}]`)}},
	}})
	first := b.runningLRPs("web", 1)[0]
	if first.MetricTags["instance"] != "0" || first.NetInfo.Ports[0].ContainerPort != 8080 || first.InstanceKey.CellId == "" {
		b.T.Errorf("got %v", first)
	}
	b.serves("web.bbs.test", "ready")
	b.scale("web", 2)
	b.runningLRPs("web", 2)

	b.Kill()
	b.Start()
	b.url = bbs(b.Daemon).url // another port
	if again := b.runningLRPs("web", 2)[0]; again.InstanceKey.InstanceGuid != first.InstanceKey.InstanceGuid {
		b.T.Errorf("instance %s became %s", first.InstanceKey.InstanceGuid, again.InstanceKey.InstanceGuid)
	}
	b.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: "web", Update: &bbspb.DesiredLRPUpdate{
		Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(`[{"hostnames":["moved.bbs.test/sub"],"port":8080}]`)}}}})
	b.servesAt("moved.bbs.test", "/sub", "ready")
	if status, _, err := b.Get("web.bbs.test", "/"); err != nil || status != 404 {
		b.T.Errorf("the old route: got %d, %v; want 404", status, err)
	}
	b.must("/v1/actual_lrps/retire", &bbspb.RetireActualLRPRequest{Key: &bbspb.ActualLRPKey{ProcessGuid: "web", Domain: "tests"}})
	e2e.Eventually(b.T, time.Minute, func() string {
		for _, a := range b.actuals("web") {
			if a.InstanceKey.InstanceGuid == first.InstanceKey.InstanceGuid {
				return "the retired instance is still there"
			}
		}
		return ""
	})
	b.runningLRPs("web", 2)
	b.scale("web", 1)
	b.runningLRPs("web", 1)
	b.must("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "web"})
	e2e.Eventually(b.T, time.Minute, func() string {
		if left := b.actuals("web"); len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
	want := []string{"desired_lrp_created", "actual_lrp_instance_created", "actual_lrp_instance_changed"}
	if got := events(); len(got) < 3 || strings.Join(got[:3], " ") != strings.Join(want, " ") {
		b.T.Errorf("got events %v; want %v first", got, want)
	}
}

func (b *bbsClient) scale(guid string, n int32) {
	b.T.Helper()
	b.must("/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: guid, Update: &bbspb.DesiredLRPUpdate{Instances: &n}})
}

func (b *bbsClient) serves(host, want string) { b.T.Helper(); b.servesAt(host, "/", want) }

func (b *bbsClient) servesAt(host, path, want string) {
	b.T.Helper()
	e2e.Eventually(b.T, time.Minute, func() string {
		status, body, err := b.Get(host, path)
		if err != nil || status != 200 || !strings.Contains(body, want) {
			return fmt.Sprintf("%s%s: %d %q %v", host, path, status, body, err)
		}
		return ""
	})
}

// lrpCrashes wants two restarts at once and then a wait, told by events.
func (b *bbsClient) lrpCrashes() {
	events := b.names("/v1/events/lrp_instances.r1", "")
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: &bbspb.DesiredLRP{
		ProcessGuid: "crasher", Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64, LogSource: "BAD", LogGuid: "bad-log", MetricTags: tags("bad-log"),
		Action: shell("echo going down; exit 7")}})
	e2e.Eventually(b.T, 60*time.Second, func() string {
		a := b.actuals("crasher")[0]
		if a.State != "CRASHED" || a.CrashCount != 3 || a.CrashReason != "BAD: Exited with status 7" {
			return fmt.Sprint(a)
		}
		return ""
	})
	e2e.Eventually(b.T, time.Minute, func() string { // events come after the rows
		crashes := 0
		for _, name := range events() {
			if name == "actual_lrp_crashed" {
				crashes++
			}
		}
		if crashes == 3 {
			return ""
		}
		return fmt.Sprintf("%d crashes among %v", crashes, events())
	})
	b.logHas("bad-log", "going down")
	b.must("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "crasher"})
}

// logHas waits until the log of a source has a line.
func (b *bbsClient) logHas(source, text string) { b.T.Helper(); b.logHasAll(source, text) }

func (b *bbsClient) logHasAll(source string, texts ...string) {
	b.T.Helper()
	e2e.Eventually(b.T, time.Minute, func() string {
		if len(texts) == 0 {
			return ""
		}
		log := b.logOf(source)
		for _, text := range texts {
			if !strings.Contains(log, text) {
				return fmt.Sprintf("no %q in the log of %s:\n%s", text, source, log)
			}
		}
		return ""
	})
}

// logOf is the log of a source, each line after whom it comes from.
func (b *bbsClient) logOf(source string) string {
	b.T.Helper()
	var answer struct {
		Envelopes struct {
			Batch []struct {
				Tags map[string]string
				Log  struct{ Payload string }
			}
		}
	}
	b.API("GET", "/api/v1/read/"+source+"?envelope_types=LOG&limit=1000", nil, &answer)
	var log strings.Builder
	for _, e := range answer.Envelopes.Batch {
		line, _ := base64.StdEncoding.DecodeString(e.Log.Payload)
		fmt.Fprintf(&log, "%s: %s\n", e.Tags["source_type"], line)
	}
	return log.String()
}

// taskCallsBack runs a task to its end: the owner gets the callback, and the task is deleted.
func (b *bbsClient) taskCallsBack() {
	events := b.names("/v1/events/tasks.r1", "")
	received := make(chan map[string]any, 10)
	tries := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // and once more
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			b.T.Error(err)
		}
		received <- body
	}))
	defer srv.Close()
	b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "sum", Domain: "tests", Definition: &bbspb.TaskDefinition{
		RootFs: "preloaded:minifs", Action: shell("echo $A > /tmp/result"), Env: []*bbspb.Env{{Name: "A", Value: "forty-two"}}, MemoryMb: 64,
		ResultFile: "/tmp/result", CompletionCallbackUrl: srv.URL, Annotation: "mine", LogGuid: "task-log", LogSource: "TASK", MetricTags: tags("task-log")}})
	select {
	case got := <-received:
		if got["task_guid"] != "sum" || got["failed"] != false || got["result"] != "forty-two\n" || got["annotation"] != "mine" {
			b.T.Errorf("got %v", got)
		}
	case <-time.After(60 * time.Second):
		b.T.Fatal("the owner was not told")
	}
	e2e.Eventually(b.T, time.Minute, func() string {
		res := &bbspb.TaskResponse{}
		if b.ask("/v1/tasks/get_by_task_guid.r3", &bbspb.TaskGUIDRequest{TaskGuid: "sum"}, res); res.Error.GetType() != 13 {
			return fmt.Sprint(res)
		}
		return ""
	})
	want := "task_created task_changed task_changed task_changed task_removed" // running, completed, resolving
	e2e.Eventually(b.T, time.Minute, func() string {                           // events come after the rows
		if got := strings.Join(events(), " "); got != want {
			return fmt.Sprintf("got %s; want %s", got, want)
		}
		return ""
	})
}

// taskIsCancelled cancels one that runs, whose container goes.
func (b *bbsClient) taskIsCancelled() {
	b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "long", Domain: "tests", Definition: &bbspb.TaskDefinition{
		RootFs: "preloaded:minifs", Action: shell("echo begun; sleep 1000"), MemoryMb: 64, LogGuid: "long-log", MetricTags: tags("long-log")}})
	task := func() *bbspb.Task {
		res := &bbspb.TaskResponse{}
		b.ask("/v1/tasks/get_by_task_guid.r2", &bbspb.TaskGUIDRequest{TaskGuid: "long"}, res)
		return res.Task
	}
	e2e.Eventually(b.T, time.Minute, func() string {
		if task().State != bbspb.TaskState_TASK_STATE_RUNNING {
			return fmt.Sprint(task())
		}
		return ""
	})
	b.logHas("long-log", "LOG: begun")
	b.must("/v1/tasks/cancel", &bbspb.TaskGUIDRequest{TaskGuid: "long"})
	if got := task(); got.State != bbspb.TaskState_TASK_STATE_COMPLETED || !got.Failed || got.FailureReason != "task was cancelled" {
		b.T.Errorf("got %v", got)
	}
	b.logHasAll("long-log", " stopping instance ", " successfully destroyed container for instance ")
	again := &bbspb.LifecycleResponse{}
	if b.ask("/v1/tasks/cancel", &bbspb.TaskGUIDRequest{TaskGuid: "long"}, again); again.Error.GetType() != 9 || again.Error.GetMessage() != "Cannot transition from Completed to Completed" {
		b.T.Errorf("got %v", again.Error)
	}
	b.must("/v1/tasks/resolving", &bbspb.TaskGUIDRequest{TaskGuid: "long"})
	b.must("/v1/tasks/delete", &bbspb.TaskGUIDRequest{TaskGuid: "long"})
}

// appsAreShown wants a pushed app to be seen as a DesiredLRP that the BBS does
// not change.
func (b *bbsClient) appsAreShown() {
	b.PushProbe("probe")
	res := &bbspb.DesiredLRPsResponse{}
	b.ask("/v1/desired_lrps/list.r3", &bbspb.DesiredLRPsRequest{Domain: "cf-apps", AppGuids: []string{b.App("probe")}}, res)
	if len(res.DesiredLrps) != 1 {
		b.T.Fatalf("got %v", res)
	}
	app := res.DesiredLrps[0]
	if app.Instances != 1 || app.MemoryMb != 64 || app.Action == nil {
		b.T.Errorf("got %v", app)
	}
	for router, want := range map[string]string{ // CC: diego/app_recipe_builder.rb
		"cf-router":       `[{"hostnames":["probe.localhost"],"port":8080,"route_service_url":null,"isolation_segment":null,"protocol":"http1"}]`,
		"tcp-router":      "[]",
		"internal-router": "[]",
	} {
		if got := string(app.Routes.Routes[router]); got != want {
			b.T.Errorf("%s: got %s; want %s", router, got, want)
		}
	}
	a := b.runningLRPs(app.ProcessGuid, 1)[0]
	b.sshEntersApp(app.ProcessGuid, a.InstanceKey.InstanceGuid)
	refused := &bbspb.LifecycleResponse{}
	b.ask("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: app.ProcessGuid}, refused)
	if refused.Error.GetType() != 11 {
		b.T.Errorf("got %v; want a conflict", refused)
	}
	b.tasksAreShown()
}

// tasksAreShown wants a task of an app to be among the tasks, and in the state of
// its cell.
func (b *bbsClient) tasksAreShown() {
	var made struct{ GUID string }
	b.API("POST", "/v3/apps/"+b.App("probe")+"/tasks", map[string]any{"command": "sleep 1000", "memory_in_mb": 32}, &made)
	e2e.Eventually(b.T, time.Minute, func() string {
		res := &bbspb.TasksResponse{}
		b.ask("/v1/tasks/list.r3", &bbspb.TasksRequest{Domain: "cf-tasks"}, res)
		if len(res.Tasks) != 1 || res.Tasks[0].TaskGuid != made.GUID || res.Tasks[0].State != bbspb.TaskState_TASK_STATE_RUNNING ||
			res.Tasks[0].Definition.GetMemoryMb() != 32 || res.Tasks[0].Definition.GetAction().GetRun().GetPath() != "/tmp/lifecycle/launcher" {
			return fmt.Sprint(res)
		}
		return ""
	})
	cells := &bbspb.CellsResponse{}
	b.ask("/v1/cells/list.r1", &bbspb.Empty{}, cells)
	e2e.Eventually(b.T, time.Minute, func() string { // the row is written before the container is made
		res, err := b.http.Get(cells.Cells[0].RepUrl + "/state")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		state, err := io.ReadAll(res.Body)
		if want := `{"TaskGuid":"` + made.GUID + `","Domain":"cf-tasks"`; err != nil || !strings.Contains(string(state), want) {
			return fmt.Sprintf("got %s, %v; want %s", state, err, want)
		}
		return ""
	})
	b.API("POST", "/v3/tasks/"+made.GUID+"/actions/cancel", nil, nil)
}
