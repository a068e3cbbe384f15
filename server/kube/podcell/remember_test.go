package podcell

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/cells"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, namespace: apps}}], clusters: [{name: a, cluster: {server: "https://192.0.2.1"}}]}`

// A cluster that --kubernetes does not name any longer is still known, until its kubeconfig is gone.
func TestLeft(t *testing.T) {
	dir, file, log := t.TempDir(), t.TempDir()+"/kubeconfig", slog.New(slog.DiscardHandler)
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	given := cells.Cluster{Name: "edge", Kubeconfig: file, Context: "a", Zone: "z2"}
	if _, err := Open(given, Config{Owner: "me", Dir: filepath.Join(dir, "edge"), Log: log}); err != nil {
		t.Fatal(err)
	}
	left := func(given ...cells.Cluster) []cells.Cluster {
		t.Helper()
		all, err := Left(dir, given, log)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := left(given); len(got) > 0 {
		t.Errorf("got %+v left though it is given", got)
	}
	want := given
	want.Leaving = true
	if got := left(); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	c, err := Open(left()[0], Config{Owner: "me", Dir: filepath.Join(dir, "edge"), Log: log})
	if err != nil || !c.Presence().Leaving || len(left()) != 1 {
		t.Errorf("got %v, %+v", err, left())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("got %+v without its kubeconfig", got)
	}
	if files, _ := filepath.Glob(dir + "/*/" + clusterFile); len(files) > 0 {
		t.Errorf("%v is still there", files)
	}
}

// It is forgotten once nothing is left there, and not before.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir)
		synctest.Wait()
		w.Start(member(guid, "space", "back"))
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Second)
		w.kill()
		if err := os.WriteFile(filepath.Join(dir, clusterFile), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		known := func() bool {
			_, err := os.Stat(filepath.Join(dir, clusterFile))
			return err == nil
		}
		w = run(t, c, dir, func(cfg *Config) { cfg.Presence.Leaving = true })
		wait(time.Minute)
		if list := w.Containers(); len(list) != 1 || list[0].Phase != lrp.PhaseRunning || !known() || !w.Presence().Leaving {
			t.Errorf("got %+v; the cluster is known: %t", list, known())
		}
		w.Stop(guid)
		wait(time.Second)
		c.exits(guid, 0)
		wait(time.Minute)
		if known() || c.policies() != "" || len(c.left()) > 0 {
			t.Errorf("the cluster is known: %t; left: %v, %q", known(), c.left(), c.policies())
		}
	})
}
