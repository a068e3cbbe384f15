package podcell

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// droplet is an instance of an app that was pushed from source.
func droplet(guid string) lrp.Container {
	c := container(guid)
	c.RootFS, c.Layers, c.Files = "preloaded:debian12", []lrp.Layer{{Source: lrp.Blobbed("ab"), Dest: "/home/vcap"}}, nil
	return c
}

// TestDroplet makes the pod of a droplet run the image that was made of it; its Secret with the registry's password goes with it.
func TestDroplet(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		if p := w.Presence(); !slices.Equal(p.RootFSes, []string{"debian12"}) {
			t.Errorf("the cell offers %v", p.RootFSes)
		}
		w.Start(droplet(guid))
		wait(0)
		if got := strings.Join(c.left(), " "); got != "i-1 i-1-env i-1-pull" {
			t.Fatalf("the cluster has %s", got)
		}
		pod := c.objects["Pod"][guid]
		if got := pod.Items("spec", "containers")[0].Text("image"); got != "192.0.2.1:5443/droplets/ab@sha256:ab" {
			t.Errorf("the pod runs %s", got)
		}
		if s := w.Containers()[0]; s.RootFS != "preloaded:debian12" {
			t.Errorf("got %+v", s)
		}
		if got := w.take(); !strings.Contains(got, "CELL: Cell edge packing stack debian12") {
			t.Errorf("got %s", got)
		}
		w.Stop(guid)
		wait(0)
		if len(c.left()) > 0 || len(w.Containers()) > 0 {
			t.Errorf("the cluster still has %v, the cell %v", c.left(), w.Containers())
		}
	})
}

// TestAttach enters an instance of a droplet that runs; in one of a docker app it starts the helper alone.
func TestAttach(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		refused := func(guid, want string) {
			t.Helper()
			if _, err := w.Attach(t.Context(), guid, "sshd"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %q", err, want)
			}
		}
		refused(guid, "there is no such container")
		w.Start(droplet(guid))
		w.Start(container("docker"))
		wait(0)
		refused(guid, "there is no such container")
		refused("docker", "there is no such container")
		c.begins("docker", true, true)
		wait(time.Second)
		refused("docker", "only the SSH server of cupola")
		c.begins(guid, true, true)
		wait(time.Second)
		s, err := w.Attach(t.Context(), guid, "lifecycle", "sshd")
		if err != nil {
			t.Fatal(err)
		}
		const want = "i-1 process [lifecycle sshd]: hello"
		got := make([]byte, len(want))
		if _, err := io.WriteString(s, "hello"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(s, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		c.refuses = errors.New("no program")
		refused(guid, "EOF")
		c.setDown(errors.New("no answer"))
		refused(guid, "no answer")
		c.setDown(nil)
	})
}

func TestPackingFails(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.pack = func(context.Context) (string, error) { return "", errors.New("no room") }
		w.Start(droplet(guid))
		wait(0)
		if got := w.take(); !strings.Contains(got, "event exited -1 failed=true stopped=false failed to create container: make its image: no room") || len(c.left())+len(w.Containers()) > 0 {
			t.Errorf("got %s; left: %v, %v", got, c.left(), w.Containers())
		}
	})
}

// TestStopWhilePacking ends the packing; so does the end of the daemon, whose successor starts the instance again.
func TestStopWhilePacking(t *testing.T) {
	for name, end := range map[string]func(*world){"stop": func(w *world) { w.Stop(guid) }, "the daemon ends": (*world).kill} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster, w *world) {
				w.pack = func(ctx context.Context) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				}
				w.Start(droplet(guid))
				wait(0)
				if w.phase() != lrp.PhaseCreating {
					t.Errorf("the instance is %s", w.phase())
				}
				w.take()
				end(w)
				wait(0)
				if got := w.take(); strings.Contains(got, "event exited 0 failed=false stopped=true") != (name == "stop") || strings.Contains(got, "failed to create") || len(c.left()) > 0 {
					t.Errorf("got %s; left: %v", got, c.left())
				}
			})
		})
	}
}
