package cell

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// traces are what a cell reports.
type traces struct {
	mu  sync.Mutex
	all []lrp.Trace
}

func (s *traces) take(c *Cell) {
	c.cfg.Trace = func(lrp.Container) func(lrp.Trace) {
		return func(t lrp.Trace) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.all = append(s.all, t)
		}
	}
}

// of is the one trace that was reported, as the names of its steps; those that failed have a mark.
func (s *traces) of(t *testing.T) (lrp.Trace, string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) != 1 {
		t.Fatalf("got traces %+v; want one", s.all)
	}
	var names []string
	for _, step := range s.all[0].Steps {
		name := strings.TrimSpace(step.Name + " " + step.Detail)
		if step.Failed {
			name += "!"
		}
		if step.Began.Before(s.all[0].Began) || step.Ended.Before(step.Began) || step.Ended.After(s.all[0].Ended) {
			t.Errorf("%s: got %v to %v of %v to %v", name, step.Began, step.Ended, s.all[0].Began, s.all[0].Ended)
		}
		names = append(names, name)
	}
	return s.all[0], strings.Join(names, ", ")
}

const created = "volumes, network, root filesystem, places of volumes, layers, files, memory, "

func TestTraceOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traces{}
		d := boot(t, newMachine(t), t.TempDir(), s.take)
		defer d.kill()
		c := web()
		c.Checks.Liveness = []lrp.Check{{Type: lrp.CheckPort, Port: 8080}}
		d.Start(c)
		synctest.Wait()
		if len(s.all) != 0 {
			t.Errorf("got %+v before the instance ran", s.all)
		}
		d.checks <- health.Event{Type: health.Healthy}
		synctest.Wait()
		if got, steps := s.of(t); steps != created+"processes, download, health check" || got.Failure != "" {
			t.Errorf("got %q of %+v", steps, got)
		}
		d.Stop("g1")
		d.last(t)
		s.of(t) // no second one
	})
}

func TestTraceOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traces{}
		d := boot(t, newMachine(t), t.TempDir(), s.take)
		defer d.kill()
		c := task()
		c.Setup, c.ResultFile = lrp.Action{}, ""
		c.Action = lrp.Serial(lrp.Download{Source: lrp.Blobbed("in"), Artifact: "app", To: "/tmp/app"}.Action(), act("/bin/web"), lrp.Upload{Artifact: "droplet", From: "/none", To: "blob:droplet"}.Action())
		d.Start(c)
		synctest.Wait()
		d.m.finish(t, "t1", "/bin/web", code(0))
		exit := d.last(t).Exit
		if got, steps := s.of(t); steps != created+"download app, processes, run web, upload droplet!" || got.Failure != exit.Reason || got.Failure == "" {
			t.Errorf("got %q of %+v; want the exit %+v", steps, got, exit)
		}
	})
}

func TestTraceOfWhatIsNotCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := &traces{}, newMachine(t)
		d := boot(t, m, t.TempDir(), s.take)
		defer d.kill()
		c := web()
		c.Layers = []lrp.Layer{{Source: lrp.Blobbed("missing"), Dest: "/home/vcap"}}
		d.Start(c)
		exit := d.last(t).Exit
		if got, steps := s.of(t); !strings.HasSuffix(steps, "root filesystem!") || got.Failure != exit.Reason || got.Failure == "" {
			t.Errorf("got %q of %+v; want the exit %+v", steps, got, exit)
		}
	})
}
