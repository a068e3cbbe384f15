package bbs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// uploads takes what containers upload.
type uploads struct {
	*httptest.Server
	mu   sync.Mutex
	body map[string]string // by path
}

func takeUploads(t testing.TB) *uploads {
	u := &uploads{body: map[string]string{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.body[r.URL.Path] = string(body)
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *uploads) got(path string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.body[path]
}

func serial(all ...*bbspb.Action) *bbspb.Action {
	return &bbspb.Action{Serial: &bbspb.Actions{Actions: all}}
}

func parallel(all ...*bbspb.Action) *bbspb.Action {
	return &bbspb.Action{Parallel: &bbspb.Actions{Actions: all}}
}

func codependent(all ...*bbspb.Action) *bbspb.Action {
	return &bbspb.Action{Codependent: &bbspb.Actions{Actions: all}}
}

func try(a *bbspb.Action) *bbspb.Action { return &bbspb.Action{Try: &bbspb.Try{Action: a}} }

func within(ms int64, a *bbspb.Action) *bbspb.Action {
	return &bbspb.Action{Timeout: &bbspb.Timeout{Action: a, TimeoutMs: ms}}
}

func emitting(a *bbspb.Action) *bbspb.Action {
	return &bbspb.Action{EmitProgress: &bbspb.EmitProgress{Action: a, StartMessage: "it begins", SuccessMessage: "it went well", FailureMessagePrefix: "it went wrong"}}
}

// said has an action log from another source.
func said(source, script string) *bbspb.Action {
	a := shell(script)
	a.Run.LogSource = source
	return a
}

// filed gives the process of an action files.
func filed(a *bbspb.Action, files ...*bbspb.File) *bbspb.Action {
	a.Run.VolumeMountedFiles = files
	return a
}

// probeRun runs a command of the probe, which lies in /probe.
func probeRun(args ...string) *bbspb.Action {
	return &bbspb.Action{Run: &bbspb.Run{Path: "/probe/probe", Args: args, User: "vcap"}}
}

// taskCase is a task and how it has to end.
type taskCase struct {
	action *bbspb.Action
	with   func(*bbspb.TaskDefinition)
	reason string   // "" for one that succeeds
	result string   // of the result file
	logs   []string // that are in its log
}

// tasksEnd runs every action of Diego's, in all ways it ends, and wants Diego's
// texts.
func (b *bbsClient) tasksEnd() {
	u, archive := takeUploads(b.T), probeTar(b.T.(*testing.T))
	own := serveArchive(b.T, "the client's own")
	upload := func(artifact, from, path string) *bbspb.Action {
		return &bbspb.Action{Upload: &bbspb.Upload{Artifact: artifact, From: from, To: u.URL + path, User: "vcap"}}
	}
	download := func(from string) *bbspb.Action {
		return &bbspb.Action{Download: &bbspb.Download{Artifact: "it", From: from, To: "in", User: "vcap"}}
	}
	limited := probeRun("limits")
	limited.Run.ResourceLimits = &bbspb.ResourceLimits{Nofile: new(uint64(321)), Nproc: new(uint64(77))}
	manyFiles := probeRun("limits")
	manyFiles.Run.ResourceLimits = &bbspb.ResourceLimits{Nofile: new(uint64(1 << 40))}
	quiet := shell("echo nobody hears")
	quiet.Run.SuppressLogOutput = true
	env := shell("echo $A $B $CF_INSTANCE_GUID")
	env.Run.Env = []*bbspb.Env{{Name: "B", Value: "of-run"}}
	layers := []*bbspb.ImageLayer{
		serveZip(b.T, "of all ").layer("/shared", bbspb.LayerType_LAYER_TYPE_SHARED), serveArchive(b.T, "of one ").layer("/own", bbspb.LayerType_LAYER_TYPE_EXCLUSIVE)}
	cases := map[string]taskCase{
		"serial": {action: serial(shell("echo a > /tmp/r"), shell("echo b >> /tmp/r"), quiet), result: "a\nb\n", logs: []string{"T: Exit status 0"}},
		"stops":  {action: serial(shell("exit 3"), shell("echo never")), reason: "T: Exited with status 3", logs: []string{"T: Exit status 3"}},
		// Reasons are in the order of ends: Y ends when X's process has gone.
		"parallel": {action: parallel(said("X", "echo $$ > /tmp/x; exit 2"),
			said("Y", "until [ -s /tmp/x ] && ! [ -e /proc/$(cat /tmp/x) ]; do sleep 0.05; done; sleep 0.5; echo all the same > /tmp/waited; exit 4")),
			reason: "X: Exited with status 2; Y: Exited with status 4"},
		"codependent": {action: codependent(shell("sleep 1000"), shell("exit 0")), reason: "Codependent step exited"},
		"fails":       {action: codependent(shell("sleep 1000"), shell("exit 6")), reason: "T: Exited with status 6"},
		"try":         {action: serial(try(shell("exit 5")), try(download("http://127.0.0.1:1/none")), shell("echo on > /tmp/r")), result: "on\n", logs: []string{"T: Exit status 5", "T: Downloading it failed"}},
		"timeout":     {action: within(1000, shell("sleep 1000")), reason: "exceeded 1s timeout"},
		"in-time":     {action: within(60_000, shell("echo soon > /tmp/r")), result: "soon\n"},
		"progress":    {action: emitting(shell("exit 0")), logs: []string{"T: it begins", "T: it went well"}},
		"no-progress": {action: emitting(shell("exit 9")), reason: "T: Exited with status 9", logs: []string{"T: it begins", "T: it went wrong: T: Exited with status 9"}},
		"download":    {action: serial(download(archive), shell("ls in > /tmp/r")), result: "probe\n", logs: []string{"T: Downloading it...", "T: Downloaded it ("}},
		"no-download": {action: download(archive + "x"), reason: "Downloading it failed", logs: []string{"T: Downloading it failed"}},
		"bad-sum": {action: &bbspb.Action{Download: &bbspb.Download{From: archive, To: ".", User: "vcap", ChecksumAlgorithm: "sha256", ChecksumValue: strings.Repeat("0", 64)}},
			reason: "Downloading failed"},
		"upload":    {action: serial(shell("echo up > /tmp/up"), upload("the file", "/tmp/up", "/up")), logs: []string{"T: Uploading the file...", "T: Uploaded the file (3B)"}},
		"no-upload": {action: serial(shell("echo up > /tmp/up"), upload("the file", "/tmp/up", "/refused")), reason: "Failed to upload payload for the file"},
		"no-file":   {action: upload("the file", "/tmp/none", "/none"), reason: "Failed to establish stream from container for the file"},
		"env": {action: env, with: func(d *bbspb.TaskDefinition) {
			d.Env = []*bbspb.Env{{Name: "A", Value: "of-definition"}, {Name: "B", Value: "not"}}
		}, logs: []string{"T: of-definition of-run "}},
		"limits":    {action: limited, logs: []string{"T: nofile 321 nproc 77"}},
		"pids":      {action: probeRun("fork", "200"), with: func(d *bbspb.TaskDefinition) { d.MaxPids = 40 }, logs: []string{"T: forked some: true fork/exec /probe/probe: resource temporarily unavailable"}},
		"oom":       {action: serial(shell("exit 0"), probeRun("eat")), reason: "T: Exited with status 137 (out of memory)"},
		"oom-alone": {action: probeRun("eat"), reason: "T: Exited with status 137 (out of memory)", logs: []string{"T: Exit status 137 (out of memory)"}},
		"chatty": {action: probeRun("say"), with: func(d *bbspb.TaskDefinition) { d.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: 1000} },
			logs: []string{"T: " + strings.Repeat("x", 100), "app instance exceeded log rate limit (1000 bytes/sec)"}},
		// What a client puts at /tmp/lifecycle is its own, as in Diego.
		"own-lifecycle": {action: shell("ls /tmp/lifecycle > /tmp/r; cat /tmp/lifecycle/f >> /tmp/r"), with: func(d *bbspb.TaskDefinition) {
			d.CachedDependencies = append(d.CachedDependencies, &bbspb.CachedDependency{From: own.url, To: "/tmp/lifecycle", CacheKey: "own"})
		}, result: "f\nthe client's own"},
		"own-lifecycle-download": {action: serial(&bbspb.Action{Download: &bbspb.Download{From: own.url, To: "/tmp/lifecycle", User: "root"}},
			shell("ls /tmp/lifecycle > /tmp/r; cat /tmp/lifecycle/f >> /tmp/r")), result: "f\nthe client's own"},
		"own-lifecycle-layer": {action: shell("ls /tmp/lifecycle > /tmp/r; cat /tmp/lifecycle/f >> /tmp/r"), with: func(d *bbspb.TaskDefinition) {
			d.ImageLayers = []*bbspb.ImageLayer{own.layer("/tmp/lifecycle", bbspb.LayerType_LAYER_TYPE_SHARED)}
		}, result: "f\nthe client's own"},
		// rep: generator/internal/container_delegate.go, MAX_RESULT_SIZE.
		"large-result":     {action: probeRun("fill", "/tmp/r", "51200"), result: strings.Repeat("x", 50<<10)},
		"too-large-result": {action: probeRun("fill", "/tmp/r", "51201"), with: func(d *bbspb.TaskDefinition) { d.ResultFile = "/tmp/r" }, reason: "failed to fetch result"},
		"no-result":        {action: shell("exit 0"), with: func(d *bbspb.TaskDefinition) { d.ResultFile = "/tmp/none" }, reason: "failed to fetch result"},
		"no-user":          {action: &bbspb.Action{Run: &bbspb.Run{Path: "/bin/true", User: "who"}}, reason: `failed to run container: no user "who" in the root filesystem`},
		"files": {action: filed(shell("cd /etc/cf-service-bindings && cat a/b c > /tmp/r && echo changed > c"), &bbspb.File{Path: "/c", Content: "of-run\xff"}), with: func(d *bbspb.TaskDefinition) {
			d.VolumeMountedFiles = []*bbspb.File{{Path: "a/b", Content: "of-definition "}}
		}, reason: "T: Exited with status 1", logs: []string{"T: open /etc/cf-service-bindings/c: read-only file system"}},
		"files-kept": {action: filed(shell("cat /etc/cf-service-bindings/* > /tmp/r"), &bbspb.File{Path: "c", Content: "of-run\xff"}), result: "of-run\xff"},
		"bad-files": {action: shell("exit 0"), with: func(d *bbspb.TaskDefinition) {
			d.VolumeMountedFiles = []*bbspb.File{{Path: "a", Content: "a"}, {Path: "a/b", Content: "b"}}
		}, reason: "failed to create volume mounted files"},
		"layers": {action: shell("cat /shared/f /own/f > /tmp/r; [ -O /own/f ] || echo not mine >> /tmp/r; echo more > /shared/f; cat /shared/f >> /tmp/r"), with: func(d *bbspb.TaskDefinition) {
			d.ImageLayers, d.LegacyDownloadUser = layers, "root"
		}, result: "of all of one not mine\nmore\n"},
		"no-layer": {action: shell("exit 0"), with: func(d *bbspb.TaskDefinition) {
			bad := serveZip(b.T, "bad").layer("/bad", bbspb.LayerType_LAYER_TYPE_SHARED)
			bad.DigestValue = strings.Repeat("0", 64)
			d.ImageLayers = []*bbspb.ImageLayer{bad}
		}, reason: "failed to download cached artifacts", logs: []string{"T: Downloading layer/bad failed"}},
		"silent":     {action: probeRun("say"), with: func(d *bbspb.TaskDefinition) { d.LogRateLimit = &bbspb.LogRateLimit{} }},
		"talkative":  {action: serial(probeRun("say"), shell("echo at last")), with: func(d *bbspb.TaskDefinition) { d.LogRateLimit = &bbspb.LogRateLimit{BytesPerSecond: -1} }, logs: []string{"T: at last"}},
		"many-files": {action: manyFiles, logs: []string{"T: Cell cupola limits the open files of /probe/probe to "}},
	}
	res := &bbspb.LifecycleResponse{}
	b.ask("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "p", Domain: "tasks", Definition: (&taskCase{action: shell("exit 0"), with: func(d *bbspb.TaskDefinition) { d.Privileged = true }}).definition("p", archive)}, res)
	if got := res.GetError().GetMessage(); !strings.Contains(got, "privileged containers are not supported") {
		b.T.Errorf("a privileged task: got %q", got)
	}
	for guid, c := range cases {
		b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: guid, Domain: "tasks", Definition: c.definition(guid, archive)})
	}
	ended := b.tasksEnded("tasks", len(cases))
	for guid, c := range cases {
		got := ended[guid]
		if got.Failed != (c.reason != "") || got.FailureReason != c.reason || got.Result != c.result {
			b.T.Errorf("%s: got %t %q %q; want %q %q", guid, got.Failed, got.FailureReason, got.Result, c.reason, c.result)
		}
		b.logHasAll(guid, c.logs...)
	}
	if got := u.got("/up"); got != "up\n" {
		b.T.Errorf("got %q uploaded", got)
	}
	for guid, text := range map[string]string{"serial": "nobody hears", "stops": "never", "silent": "xxx", "talkative": "exceeded"} {
		if log := b.logOf(guid); strings.Contains(log, text) {
			b.T.Errorf("%s: got %s", guid, log)
		}
	}
}

func (c taskCase) definition(guid, archive string) *bbspb.TaskDefinition {
	d := &bbspb.TaskDefinition{RootFs: "preloaded:minifs", Action: c.action, MemoryMb: 64, DiskMb: 64, LogGuid: guid, LogSource: "T", MetricTags: tags(guid),
		CachedDependencies: []*bbspb.CachedDependency{{From: archive, To: "/probe", CacheKey: "probe"}}}
	if c.result != "" {
		d.ResultFile = "/tmp/r"
	}
	if c.with != nil {
		c.with(d)
	}
	return d
}

// tasksEnded waits until n tasks of a domain have ended.
func (b *bbsClient) tasksEnded(domain string, n int) map[string]*bbspb.Task {
	b.T.Helper()
	ended := map[string]*bbspb.Task{}
	e2e.Eventually(b.T, 60*time.Second, func() string {
		res := &bbspb.TasksResponse{}
		b.ask("/v1/tasks/list.r3", &bbspb.TasksRequest{Domain: domain}, res)
		clear(ended)
		var left []string
		for _, task := range res.Tasks {
			if task.State == bbspb.TaskState_TASK_STATE_COMPLETED {
				ended[task.TaskGuid] = task
			} else {
				left = append(left, task.TaskGuid)
			}
		}
		if len(ended) != n {
			return fmt.Sprintf("%d tasks ended, want %d; left: %v", len(ended), n, left)
		}
		return ""
	})
	return ended
}
