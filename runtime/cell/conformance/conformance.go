package conformance

import (
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/test/goprogram"
)

// Cell is a cell as the control loop knows one.
type Cell interface {
	Start(lrp.Container)
	Stop(guid string)
	Containers() []lrp.ContainerStatus
	SetFiles(guid string, files []lrp.File) error
	SetLogTags(guid string, tags map[string]string) error
	Stats(guid string) (lrp.Stats, bool)
}

// Subject is the cell of a test.
type Subject struct {
	Cell
	*Recorder // takes what it says
	// Instance is a container of a process that runs Build's program with arguments. It has 64 MB of memory and of disk, and the port 8080.
	Instance func(guid string, args ...string) lrp.Container
	// Differs names the tests that the cell cannot pass, with the reasons.
	Differs map[string]string
}

// Build builds the program of the containers.
func Build(t testing.TB, out string) {
	t.Helper()
	if err := goprogram.Build("", "cupola/runtime/cell/conformance/testdata/app", out); err != nil {
		t.Fatal(err)
	}
}

// tests are by their names what a Subject does.
var tests = map[string]func(*testing.T, Subject){
	"crash": exits("crash", lrp.Exit{Code: 4, Failed: true, Reason: "APP/PROC/WEB: Exited with status 4"}, "APP/PROC/WEB: Exit status 4", "exit", "4"),
	"zero":  exits("zero", lrp.Exit{Failed: true}, "APP/PROC/WEB: leaving", "exit", "0"),
	"oom": exits("oom", lrp.Exit{Code: 137, Failed: true, Reason: "APP/PROC/WEB: Exited with status 137 (out of memory)"},
		"APP/PROC/WEB: Exit status 137 (out of memory)", "eat"),
	"disk":           exits("disk", lrp.Exit{Code: 28, Failed: true, Reason: "APP/PROC/WEB: Exited with status 28"}, "no space left on device", "fill"),
	"drain":          exits("drain", lrp.Exit{Failed: true}, "line 99999 of", "chatter", "100000"),
	"stop":           stop,
	"stop signals":   stopSignals,
	"program check":  programChecks,
	"never healthy":  neverHealthy,
	"environment":    environment,
	"files":          files,
	"files in place": filesInPlace,
	"sidecar":        sidecar,
	"task":           task,
	"tags":           tags,
	"once":           once,
}

// Run runs all tests side by side, and returns when they have ended.
func Run(t *testing.T, s Subject) {
	t.Helper()
	for name := range s.Differs {
		if tests[name] == nil {
			t.Errorf("the cell differs from %q, which is not the name of a test", name)
		}
	}
	t.Run("cell", func(t *testing.T) {
		for name, test := range tests {
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				if why := s.Differs[name]; why != "" {
					t.Skip(why)
				}
				t.Parallel()
				test(t, s)
			})
		}
	})
	if t.Failed() {
		t.Log(strings.Join(s.Output(), "\n"))
	}
}

// has reports whether a container is there.
func (s Subject) has(guid string) bool { return s.status(guid).GUID != "" }

// status is the zero value for a container that is not there.
func (s Subject) status(guid string) lrp.ContainerStatus {
	for _, c := range s.Containers() {
		if c.GUID == guid {
			return c
		}
	}
	return lrp.ContainerStatus{}
}

// exits runs a process that ends by itself. A cell says how, and has written all that the process had, before the container is gone.
func exits(guid string, want lrp.Exit, line string, args ...string) func(*testing.T, Subject) {
	return func(t *testing.T, s Subject) {
		s.Start(s.Instance(guid, args...))
		Eventually(t, guid+" ends", func() bool { return s.Count(guid, lrp.EventExited) > 0 && !s.has(guid) })
		if got := s.Exit(guid); got != want {
			t.Errorf("got %+v; want %+v", got, want)
		}
		if !strings.Contains(strings.Join(s.Output(), "\n"), line) {
			t.Errorf("got no line %q", line)
		}
	}
}

func stop(t *testing.T, s Subject) {
	s.Start(s.Instance("polite", "term", "politely"))
	s.Start(s.Instance("default", "exit", "0", "1h"))
	s.Find(t, "polite", lrp.EventRunning)
	s.Find(t, "default", lrp.EventRunning)
	s.WantLine(t, "waiting politely") // others wait, too
	s.Stop("polite")
	s.Stop("default")
	for _, guid := range []string{"polite", "default"} {
		if got := s.Find(t, guid, lrp.EventExited).Exit; !got.Stopped || got.Failed || got.Reason != "" {
			t.Errorf("%s: got %+v; want a good end, by SIGTERM", guid, got)
		}
	}
	s.WantLine(t, "APP/PROC/WEB: asked to end")
	Eventually(t, "they are gone", func() bool { return !s.has("polite") && !s.has("default") })
}

func stopSignals(t *testing.T, s Subject) {
	spec := s.Instance("signals", "ignore")
	spec.Action.Run.Stop = []lrp.Signal{{Name: "INT", Wait: time.Second}, {Name: "QUIT", Wait: time.Second}}
	s.Start(spec)
	s.WantLine(t, "ignoring")
	began := time.Now()
	s.Stop("signals")
	if got := s.Find(t, "signals", lrp.EventExited).Exit; !got.Stopped || got.Reason != "exceeded graceful shutdown interval" {
		t.Errorf("got %+v; want the end by SIGKILL", got)
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("got %s; want both waits", took)
	}
	for _, want := range []string{"got interrupt", "got quit", "(exceeded 2s graceful shutdown interval)"} {
		s.WantLine(t, want)
	}
	if strings.Contains(strings.Join(s.Output(), "\n"), "got terminated") {
		t.Error("got SIGTERM; want none")
	}
}

// program is a check that runs the containers' program.
func program(every time.Duration, args ...string) []lrp.Check {
	return []lrp.Check{{Type: lrp.CheckExec, Run: &lrp.Run{Path: Program, Args: args}, Interval: every, InvocationTimeout: 5 * time.Second}}
}

// Program is where containers have Build's.
const Program = "/home/vcap/app/app"

// programChecks has a program that fails for readiness leave the container alone.
func programChecks(t *testing.T, s Subject) {
	spec := s.Instance("checked", "sleep", "1h")
	spec.StartTimeout = 20 * time.Second
	spec.Checks.Liveness, spec.Checks.Readiness = program(time.Hour, "exit", "0"), program(time.Second, "exit", "3")
	s.Start(spec)
	s.Find(t, "checked", lrp.EventRunning)
	if is := s.status("checked"); is.Phase != lrp.PhaseRunning || is.Ready {
		t.Errorf("got %+v; want it running, and not ready: its readiness never passed", is)
	}
}

// neverHealthy checks that failing liveness ends the container.
func neverHealthy(t *testing.T, s Subject) {
	spec := s.Instance("ill", "sleep", "1h")
	spec.StartTimeout = time.Second
	spec.Checks.Liveness = program(0, "exit", "3")
	s.Start(spec)
	if got := s.Find(t, "ill", lrp.EventExited).Exit; !got.Failed || !strings.HasPrefix(got.Reason, "Instance never healthy after ") {
		t.Errorf("got %+v; want the end of it", got)
	}
}

func environment(t *testing.T, s Subject) {
	spec := s.Instance("env", "show", "$CF_INSTANCE_ADDR", "$CF_INSTANCE_INDEX", "$CF_INSTANCE_GUID", "$A", "$B", "/etc/cf-service-bindings/extra/file")
	spec.Env = []lrp.EnvVar{{Name: "A", Value: "definition"}, {Name: "B", Value: "$(A) ${A}"}}
	spec.Action.Run.Env = []lrp.EnvVar{{Name: "A", Value: "run"}}
	spec.Files = []lrp.File{{Path: "extra/file", Content: []byte("content")}}
	s.Start(spec)
	address := s.Find(t, "env", lrp.EventRunning).Address
	if is := s.status("env"); is.Address != address || is.Kind != lrp.KindInstance || is.ProcessGUID != spec.ProcessGUID || is.Index != spec.Index || is.MemoryMB != 64 || is.FilesDigest != lrp.FilesDigest(spec.Files) {
		t.Errorf("got %+v", is)
	}
	for _, want := range []string{"CF_INSTANCE_ADDR=" + address + ":8080", "CF_INSTANCE_INDEX=1", "CF_INSTANCE_GUID=env", "A=run", "B=$(A) ${A}",
		"/etc/cf-service-bindings/extra/file: content <nil>", "as 2000 2000 in "} {
		s.WantLine(t, want)
	}
	Eventually(t, "figures", func() bool {
		got, ok := s.Stats("env")
		return ok && got.MemoryBytes > 0 && got.MemoryQuota == 64<<20 && got.DiskQuota == 64<<20 && got.CPU > 0
	})
}

func files(t *testing.T, s Subject) {
	spec := s.Instance("files", "show", lrp.FilesPath+"/db/user", lrp.FilesPath+"/db/password")
	spec.Files = binding("one")
	s.Start(spec)
	s.WantLine(t, "/db/user: one <nil>")
	s.WantLine(t, "/db/password: one <nil>")
	if err := s.SetFiles("files", binding("two")); err != nil {
		t.Error(err)
	}
	if got := s.status("files").FilesDigest; got != lrp.FilesDigest(binding("two")) {
		t.Errorf("got the digest %s of other files", got)
	}
	if err := s.SetFiles("gone", binding("two")); err == nil {
		t.Error("files of a container that is not there were set")
	}
}

// binding are the files of a service binding.
func binding(text string) []lrp.File {
	return []lrp.File{{Path: "db/user", Content: []byte(text)}, {Path: "db/password", Content: []byte(text)}}
}

// filesInPlace has a process see all files of a binding change at once.
func filesInPlace(t *testing.T, s Subject) {
	spec := s.Instance("follows", "follow", lrp.FilesPath+"/db", "user", "password")
	spec.Files = binding("one")
	s.Start(spec)
	s.WantLine(t, "follow: one and one")
	if err := s.SetFiles("follows", binding("two")); err != nil {
		t.Error(err)
	}
	s.WantLine(t, "follow: two and two")
}

func sidecar(t *testing.T, s Subject) {
	spec := s.Instance("both", "serve")
	spec.Env = []lrp.EnvVar{{Name: "PORT", Value: "8080"}}
	spec.Checks.Liveness = []lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/"}}
	spec.StartTimeout = 20 * time.Second
	spec.Action = lrp.Codependent(spec.Action, lrp.Run{Path: Program, Args: []string{"sleep", "5s"}, LogSource: "APP/PROC/WEB/SIDECAR/SIDE"}.Action())
	s.Start(spec)
	s.Find(t, "both", lrp.EventReady)
	if got := s.Find(t, "both", lrp.EventExited).Exit; !got.Failed || got.Reason != "Codependent step exited" {
		t.Errorf("got %+v; want the end of both", got)
	}
	s.WantLine(t, "APP/PROC/WEB/SIDECAR/SIDE: Exit status 0")
	s.WantLine(t, "APP/PROC/WEB: count")
}

func task(t *testing.T, s Subject) {
	for guid, want := range map[string]lrp.Exit{
		"task-0": {}, "task-5": {Code: 5, Failed: true, Reason: "APP/TASK/JOB: Exited with status 5"},
	} {
		spec := s.Instance(guid, "exit", strings.TrimPrefix(guid, "task-"))
		spec.Kind, spec.Ports, spec.ProcessGUID, spec.Index, spec.Log.Source = lrp.KindTask, nil, "", 0, "APP/TASK/JOB"
		s.Start(spec)
		got := s.Find(t, guid, lrp.EventExited)
		if got.Kind != lrp.KindTask || got.Exit != want {
			t.Errorf("got %+v; want %+v", got, want)
		}
	}
	s.WantLine(t, "APP/TASK/JOB: leaving")
}

func tags(t *testing.T, s Subject) {
	spec := s.Instance("tags", "sleep", "1h")
	spec.Log.Tags = map[string]string{"app_name": "shop"}
	s.Start(spec)
	s.Find(t, "tags", lrp.EventRunning)
	if err := s.SetLogTags("tags", map[string]string{"app_name": "store"}); err != nil {
		t.Error(err)
	}
	if got := s.status("tags").LogTags["app_name"]; got != "store" {
		t.Errorf("got the tag %q; want store", got)
	}
	if err := s.SetLogTags("gone", nil); err == nil {
		t.Error("tags of a container that is not there were set")
	}
}

// once starts a container twice, and stops what is not there.
func once(t *testing.T, s Subject) {
	for range 2 {
		s.Start(s.Instance("once", "term"))
	}
	s.Find(t, "once", lrp.EventRunning)
	s.Stop("gone")
	s.Stop("once")
	s.Stop("once")
	s.Find(t, "once", lrp.EventExited)
	Eventually(t, "it is gone", func() bool { return !s.has("once") })
	if running, exited := s.Count("once", lrp.EventRunning), s.Count("once", lrp.EventExited); running != 1 || exited != 1 {
		t.Errorf("it came %d times, and ended %d times", running, exited)
	}
}
