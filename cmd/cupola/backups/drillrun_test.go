package backups

import (
	"log/slog"
	"testing"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/cells"
	"cupola/server/config"
)

// TestDrillConfig leaves out what leads elsewhere, and runs on this machine what ran on clusters.
func TestDrillConfig(t *testing.T) {
	c := config.Config{DataDir: t.TempDir(), HTTP: "192.0.2.1:80", HTTPS: "192.0.2.1:443", SSH: "192.0.2.1:22", BBS: "192.0.2.1:8889", Director: "192.0.2.1:25555", Metrics: "192.0.2.1:9100",
		AlertCommand: "page", AdminPassword: "other", DrainWait: time.Minute, SegmentRouters: []string{"red=192.0.2.1:81"}}
	c.Cells, c.Kubernetes = cells.NoCells(), []string{"far=kubeconfig"}
	got := drillConfig(c, &command.Env{Log: slog.New(slog.DiscardHandler), Level: &slog.LevelVar{}})
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if got.None || len(got.Cells) != 1 || got.Cells[0].MemoryMB == 0 || len(got.DataServices) == 0 {
		t.Errorf("got cells %+v, none %t, services %v; want all to run here", got.Cells, got.None, got.DataServices)
	}
	if got.HTTP != "127.0.0.1:0" || got.HTTPS != "off" || got.SSH != "off" || got.BBS+got.Director+got.Metrics+got.AlertCommand+got.AdminPassword != "" || len(got.SegmentRouters)+len(got.Kubernetes) > 0 || got.DrainWait != 0 {
		t.Errorf("got %+v; want nothing that leads elsewhere", got)
	}
}
