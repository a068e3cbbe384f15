package stage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/runtime/contract"
)

// daemon answers a stager, and is away for the first request of each path.
type daemon struct {
	*httptest.Server
	plan   string
	answer int // to outputs

	mu      sync.Mutex
	asked   map[string]int
	outputs map[string]string
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{answer: http.StatusCreated, asked: map[string]int{}, outputs: map[string]string{}}
	d.Server = httptest.NewTLSServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	t.Setenv(contract.EnvStagerURL, d.URL+"/staging/edge/s-1")
	t.Setenv(contract.EnvStagerToken, "the-token")
	t.Setenv(contract.EnvStagerCA, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw})))
	return d
}

func (d *daemon) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/staging/edge/s-1/")
	if !ok || r.Header.Get("Authorization") != "Bearer the-token" {
		http.Error(w, "authentication required", http.StatusUnauthorized)
		return
	}
	if d.asked[path]++; d.asked[path] == 1 {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	kind, name, _ := strings.Cut(path, "/")
	switch {
	case path == contract.StagerPlan && d.plan == "":
		w.WriteHeader(http.StatusGone)
	case path == contract.StagerPlan:
		_, _ = io.WriteString(w, d.plan)
	case kind == contract.StagerInputs && name == "blob:app":
		_, _ = w.Write(archive("greeting", "hello"))
	case kind == contract.StagerInputs && name == "blob:bad":
		_, _ = w.Write(archive("../out", "x"))
	case kind == contract.StagerOutputs:
		body, _ := io.ReadAll(r.Body)
		if d.answer == http.StatusCreated {
			d.outputs[name] = string(body)
		}
		http.Error(w, "no room", d.answer)
	default:
		http.Error(w, "there is none", http.StatusNotFound)
	}
}

// archive is a tar with one file.
func archive(name, text string) []byte {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	_ = t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	_, _ = io.WriteString(t, text)
	_ = t.Close()
	return b.Bytes()
}

func sh(script string) contract.StagingStep {
	return contract.StagingStep{Run: &contract.StagingRun{Path: "/bin/sh", Args: []string{"-c", script}, Env: []contract.Variable{{Name: "OWN", Value: "own"}}}}
}

// stage runs a plan, and returns its log, its error, and the directory with its result.
func stage(t *testing.T, ctx context.Context, steps func(dir string) contract.StagingStep) (log string, err error) { //nolint:revive // the context of this one staging
	t.Helper()
	dir := t.TempDir()
	c, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{contract.EnvStagerURL, contract.EnvStagerToken, contract.EnvStagerCA} {
		if os.Getenv(name) != "" {
			t.Errorf("processes would see %s", name)
		}
	}
	var lines strings.Builder
	var mu sync.Mutex
	s := &stager{client: c, plan: contract.StagingPlan{Source: "STG", Env: []contract.Variable{{Name: "COLOR", Value: "odd"}}, Result: filepath.Join(dir, "result.json"), Steps: steps(dir)}, print: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&lines, format+"\n", args...)
	}}
	err = s.run(ctx)
	return lines.String(), err
}

// TestStage brings an input, runs a process on it and sends what it made, though the daemon answers at the second attempt only.
func TestStage(t *testing.T) {
	d := newDaemon(t)
	log, err := stage(t, t.Context(), func(dir string) contract.StagingStep {
		app, made := filepath.Join(dir, "deep", "app"), filepath.Join(dir, "made")
		return contract.StagingStep{Timeout: &contract.StagingTimeout{After: time.Minute, Step: contract.StagingStep{Serial: []contract.StagingStep{
			{Parallel: []contract.StagingStep{{Download: &contract.StagingDownload{Input: "blob:app", Artifact: "app package", To: app}},
				{Try: &contract.StagingStep{Download: &contract.StagingDownload{Input: "blob:absent", Artifact: "cache", To: app}}}}},
			sh(`{ cat "` + app + `/greeting"; echo " $OWN"; } > "` + made + `"; env | grep -q '^COLOR=odd$' && echo '{}' > "` + dir + `/result.json"`),
			{Progress: &contract.StagingProgress{Start: "Uploading all...", Success: "Uploading complete", Step: contract.StagingStep{Upload: &contract.StagingUpload{Artifact: "droplet", From: made, Output: "droplet"}}}},
		}}}}
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if d.outputs["droplet"] != "hello own\n" || d.outputs["result"] != "{}\n" {
		t.Errorf("got the outputs %q", d.outputs)
	}
	for _, line := range []string{"Downloading app package...\n", "Downloaded app package (2K)\n", "Downloading cache failed: there is none\n", "Exit status 0\nUploading all...\nUploading droplet...\nUploaded droplet (10B)\nUploading complete\n"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log lacks %q:\n%s", line, log)
		}
	}
}

// TestStageFails has the reasons that the daemon gives on its own machine.
func TestStageFails(t *testing.T) {
	for name, c := range map[string]struct {
		step   contract.StagingStep
		answer int
		reason string
		log    string
		code   int
	}{
		"exit":     {step: sh("exit 223"), reason: "STG: Exited with status 223", log: "Exit status 223\n", code: 223},
		"signal":   {step: sh("kill -9 $$"), reason: "STG: Exited with status 137", log: "Exit status 137\n", code: 137},
		"absent":   {step: contract.StagingStep{Run: &contract.StagingRun{Path: "/absent"}}, reason: "failed to run container: fork/exec /absent: no such file or directory", code: 1},
		"input":    {step: contract.StagingStep{Download: &contract.StagingDownload{Input: "blob:absent", Artifact: "app package", To: "/tmp"}}, reason: "Downloading app package failed", log: "Downloading app package failed: there is none\n", code: 1},
		"hostile":  {step: contract.StagingStep{Download: &contract.StagingDownload{Input: "blob:bad", Artifact: "app package", To: t.TempDir()}}, reason: "Copying app package into the container failed: extract into ", code: 1},
		"timeout":  {step: contract.StagingStep{Timeout: &contract.StagingTimeout{After: 200 * time.Millisecond, Step: sh("exec sleep 100")}}, reason: "exceeded 200ms timeout", code: 1},
		"no file":  {step: contract.StagingStep{Upload: &contract.StagingUpload{Artifact: "droplet", From: "/absent", Output: "droplet"}}, reason: "Failed to establish stream from container for droplet", code: 1},
		"a device": {step: contract.StagingStep{Upload: &contract.StagingUpload{Artifact: "droplet", From: "/dev/zero", Output: "droplet"}}, reason: "Failed to establish stream from container for droplet", code: 1},
		"no room": {step: contract.StagingStep{Progress: &contract.StagingProgress{FailurePrefix: "Uploading failed", Step: contract.StagingStep{Upload: &contract.StagingUpload{Artifact: "droplet", From: "/etc/hostname", Output: "droplet"}}}},
			answer: http.StatusInsufficientStorage, reason: "Failed to upload payload for droplet", log: "Failed to upload payload for droplet: no room\nUploading failed: Failed to upload payload for droplet\n", code: 1},
		"no result": {step: sh("true"), reason: "failed to fetch result", code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			if c.answer != 0 {
				d.answer = c.answer
			}
			log, err := stage(t, t.Context(), func(string) contract.StagingStep { return c.step })
			f, ok := errors.AsType[failure](err)
			if !ok || !strings.HasPrefix(f.Error(), c.reason) || !strings.Contains(log, c.log) {
				t.Errorf("got %v; want %q\n%s", err, c.reason, log)
			}
			to := filepath.Join(t.TempDir(), "report")
			if got := report(to, err); got != c.code {
				t.Errorf("got the exit code %d; want %d", got, c.code)
			}
			var said contract.StagingReport
			text, _ := os.ReadFile(to)
			if err := json.Unmarshal(text, &said); err != nil || len(said.Reasons) != 1 || said.Reasons[0] != f.Error() || said.Lost {
				t.Errorf("got the report %s, %v", text, err)
			}
		})
	}
}

// TestPlan is lost where the daemon that had it is gone.
func TestPlan(t *testing.T) {
	d := newDaemon(t)
	c, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.plan(t.Context())
	to := filepath.Join(t.TempDir(), "report")
	if code := report(to, err); code != contract.StagerExit {
		t.Errorf("got the exit code %d", code)
	}
	if text, _ := os.ReadFile(to); string(text) != `{"lost":true}` {
		t.Errorf("got the report %s of %v", text, err)
	}
	d.plan = `{"source":"STG","steps":{"run":{"path":"/x","args":null}}}`
	if p, err := c.plan(t.Context()); err != nil || p.Steps.Run == nil || p.Steps.Run.Path != "/x" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestCancelled ends what runs when the pod is to end, with the signal that it gets itself.
func TestCancelled(t *testing.T) {
	newDaemon(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := filepath.Join(t.TempDir(), "ended")
	time.AfterFunc(300*time.Millisecond, cancel)
	log, err := stage(t, ctx, func(string) contract.StagingStep {
		return sh("trap 'echo by TERM > " + ended + "; exit 1' TERM; while :; do sleep 0.05; done")
	})
	if text, _ := os.ReadFile(ended); !errors.Is(err, errCancelled) || string(text) != "by TERM\n" {
		t.Errorf("got %v, %q\n%s", err, text, log)
	}
}

// TestLongReport is cut to what Kubernetes keeps.
func TestLongReport(t *testing.T) {
	to := filepath.Join(t.TempDir(), "report")
	report(to, failure{reasons: []string{"first", strings.Repeat("x", 10_000)}})
	text, _ := os.ReadFile(to)
	var said contract.StagingReport
	if err := json.Unmarshal(text, &said); err != nil || len(text) > contract.MaxStagerReport || said.Reasons[0] != "first" {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
}
