package podcell

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/kube/registry"
)

// stages is the staging of an app.
func stages(guid string) lrp.Container {
	c := container(guid)
	c.Kind, c.Domain, c.ProcessGUID, c.Files, c.RootFS, c.ResultFile, c.DiskMB = lrp.KindTask, lrp.DomainStaging, "", nil, "preloaded:debian12", contract.StagingResult, 1
	c.EgressGroup, c.Log.Source = "staging/space", "STG"
	c.Action = lrp.Within(15*time.Minute, lrp.Serial(lrp.Download{Source: lrp.Blobbed("ab"), To: "/tmp/app"}.Action(), lrp.Run{Path: "/b", Env: []lrp.EnvVar{{Name: "URL", Value: "s3cret"}}}.Action()))
	return c
}

// withBlobs has stagings keep what they make in kept.
func withBlobs(kept map[string]string) func(*Config) {
	return func(c *Config) {
		c.Pulls.CA = func() ([]byte, error) { return []byte("a CA"), nil }
		c.Pulls.Open = func(string) (*os.File, error) { return os.Open(os.DevNull) }
		c.Pulls.Keep = func(_ context.Context, r io.Reader) (lrp.Blob, error) {
			text, err := io.ReadAll(r)
			if err != nil {
				return lrp.Blob{}, err
			}
			kept["digest of "+string(text)] = string(text)
			return lrp.Blob{Digest: "digest of " + string(text), Size: int64(len(text))}, nil
		}
		c.Pulls.Has = func(digest string) bool { _, has := kept[digest]; return has }
	}
}

// inStaging runs a test of stagings.
func inStaging(t *testing.T, f func(t *testing.T, dir string, c *cluster, w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir, withBlobs(map[string]string{}))
		synctest.Wait()
		f(t, dir, c, w)
	})
}

// asked is the staging that a stager of the cell asks of.
func (w *world) asked(t *testing.T, guid string) registry.Staging {
	t.Helper()
	s, err := w.cfg.Pulls.staging("edge", guid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t *testing.T, s registry.Staging, outputs ...string) {
	t.Helper()
	for n := 0; n < len(outputs); n += 2 {
		if err := s.Output(t.Context(), outputs[n], strings.NewReader(outputs[n+1])); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStaging gives a stager its plan and what it names, and reports what it has sent.
func TestStaging(t *testing.T) {
	inStaging(t, func(t *testing.T, dir string, c *cluster, w *world) {
		if w.Presence().NoStaging {
			t.Error("the cell stages nothing")
		}
		w.Start(stages(guid))
		wait(0)
		if got := strings.Join(c.left(), " "); got != "i-1 i-1-env i-1-pull" {
			t.Fatalf("the cluster has %s", got)
		}
		if got := c.policies(); !strings.Contains(got, "isolation of the cell") {
			t.Errorf("got the policies %s", got)
		}
		s := w.asked(t, guid)
		if plan, err := s.Plan(); err != nil || !strings.Contains(string(plan), `"path":"/b"`) || !strings.Contains(string(plan), "s3cret") {
			t.Errorf("got the plan %s, %v", plan, err)
		}
		if f, err := s.Input("blob:ab"); err != nil {
			t.Error(err)
		} else {
			_ = f.Close()
		}
		for name, err := range map[string]error{"another blob": second(s.Input("blob:cd")), "another output": s.Output(t.Context(), "else", strings.NewReader("x")),
			"another staging": second(w.cfg.Pulls.staging("edge", "i-2")), "another cell": second(w.cfg.Pulls.staging("core", guid))} {
			if !errors.Is(err, registry.ErrNotNamed) && !errors.Is(err, registry.ErrNoStaging) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		for name, size := range map[string]int{"droplet": 1<<20 + 1, "result": contract.MaxResult + 1} {
			if err := s.Output(t.Context(), name, strings.NewReader(strings.Repeat("x", size))); !errors.Is(err, registry.ErrTooLarge) {
				t.Errorf("%s of %d bytes: got %v", name, size, err)
			}
		}
		send(t, s, "droplet", "d", "result", "{}", "cache", "c")
		if err := s.Output(t.Context(), "droplet", strings.NewReader("another")); !errors.Is(err, registry.ErrHas) {
			t.Errorf("a second droplet: got %v", err)
		}
		c.says(guid, "staged")
		c.exits(guid, 0, "")
		wait(time.Minute)
		if got := w.take(); !strings.Contains(got, "STG: staged\n") || !strings.HasSuffix(got, "event exited 0 failed=false stopped=false with {} cache=digest of c droplet=digest of d\nSTG: Cell edge successfully destroyed container for instance i-1") {
			t.Errorf("got %s", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left)+len(c.left())+len(w.Containers()) > 0 {
			t.Errorf("left: %v, %v", left, c.left())
		}
		if _, err := w.cfg.Pulls.staging("edge", guid); !errors.Is(err, registry.ErrNoStaging) {
			t.Errorf("the token is good after the end: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestStagingEnds has the reasons of other cells.
func TestStagingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		code int64
		said string
		want string
	}{
		"buildpack":      {223, `{"reasons":["STG: Exited with status 223"]}`, "event exited 223 failed=true stopped=false STG: Exited with status 223"},
		"timeout":        {1, `{"reasons":["exceeded 15m0s timeout"]}`, "event exited 1 failed=true stopped=false exceeded 15m0s timeout"},
		"nothing said":   {137, ``, "STG: Exit status 137\nevent exited 137 failed=true stopped=false STG: Exited with status 137"},
		"not readable":   {1, `{`, "event exited 1 failed=true stopped=false STG: Exited with status 1"},
		"without result": {0, ``, "event exited 0 failed=true stopped=false failed to fetch result"},
		"lost":           {1, `{"lost":true}`, "Pod i-1 is lost: the daemon that started it ended before it began"},
	} {
		t.Run(name, func(t *testing.T) {
			inStaging(t, func(t *testing.T, _ string, cl *cluster, w *world) {
				w.Start(stages(guid))
				wait(0)
				cl.exits(guid, c.code, c.said)
				wait(time.Minute)
				if got := w.take(); !strings.Contains(got, c.want) || strings.Contains(got, "event exited") == (name == "lost") || len(cl.left())+len(w.Containers()) > 0 {
					t.Errorf("got %s; want %s; left: %v", got, c.want, cl.left())
				}
			})
		})
	}
}

// TestStagingOutlivesTheDaemon makes the next daemon take the rest of what a staging makes. It does not know the plan.
func TestStagingOutlivesTheDaemon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c, blobs := newCluster(), withBlobs(map[string]string{})
		w := run(t, c, dir, blobs)
		wait(0)
		w.Start(stages(guid))
		wait(0)
		c.begins(guid, true, true)
		wait(time.Second)
		send(t, w.asked(t, guid), "droplet", "d")
		w.kill()
		if err := os.WriteFile(filepath.Join(dir, "gone"+keptSuffix), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		w = run(t, c, dir, blobs)
		wait(0)
		s := w.asked(t, guid)
		if _, err := s.Plan(); !errors.Is(err, registry.ErrNoStaging) {
			t.Errorf("got the plan: %v", err)
		}
		if err := s.Output(t.Context(), "droplet", strings.NewReader("another")); !errors.Is(err, registry.ErrHas) {
			t.Errorf("a second droplet: got %v", err)
		}
		if f, err := s.Input("blob:ab"); err != nil {
			t.Error(err)
		} else {
			_ = f.Close()
		}
		send(t, s, "result", "{}")
		c.exits(guid, 0, "")
		wait(time.Minute)
		if got := w.take(); !strings.Contains(got, "event exited 0 failed=false stopped=false with {} droplet=digest of d") {
			t.Errorf("got %s", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+keptSuffix)); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestStagingLate stages again where the blobs were deleted before the end of the staging was known.
func TestStagingLate(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c, kept := newCluster(), map[string]string{}
		w := run(t, c, dir, withBlobs(kept))
		wait(0)
		w.Start(stages(guid))
		wait(0)
		send(t, w.asked(t, guid), "droplet", "d", "result", "{}")
		clear(kept)
		c.exits(guid, 0)
		wait(time.Minute)
		if got := w.take(); !strings.Contains(got, "Pod i-1 is lost: what it made was not kept for so long") || strings.Contains(got, "event exited") || len(c.left())+len(w.Containers()) > 0 {
			t.Errorf("got %s; left: %v", got, c.left())
		}
	})
}

// TestStagingPolicies let a stager connect to the daemon.
func TestStagingPolicies(t *testing.T) {
	inStaging(t, func(t *testing.T, _ string, c *cluster, w *world) {
		w.cfg.Pulls.at, _ = resolve(t.Context(), "192.0.2.1:5443")
		w.Start(stages(guid))
		wait(0)
		for _, o := range c.objects["NetworkPolicy"] {
			content, _ := json.Marshal(o)
			text := string(content)
			if o.Text("metadata", "annotations", "cupola.dev/for") == "registry of cupola" && strings.Contains(text, `{"cidr":"192.0.2.1/32"}`) && strings.Contains(text, `"port":5443`) && strings.Contains(text, `"cupola.dev/stages":"true"`) {
				return
			}
		}
		t.Errorf("got the policies %s", c.policies())
	})
}
