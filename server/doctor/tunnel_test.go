package doctor

import (
	"testing"

	"cupola/runtime/lrp"
)

// TestTunnels holds that a tunnel that is not open has its cause and its mend, and that nothing is said of cells without one.
func TestTunnels(t *testing.T) {
	for _, c := range []struct {
		cell   lrp.Cell
		want   Level
		detail string
	}{
		{lrp.Cell{Tunnel: lrp.TunnelUnused}, OK, "is not needed: the pods answer at their addresses, or there are none"},
		{lrp.Cell{Tunnel: lrp.TunnelOpen}, OK, "is open: requests reach the pods by it"},
		{lrp.Cell{Tunnel: lrp.TunnelClosed}, Warn, "is being opened: requests to the pods wait for it"},
		{lrp.Cell{Tunnel: lrp.TunnelUnused, Unreachable: true}, Warn, "the daemon has not reached the cluster yet"},
		{lrp.Cell{Tunnel: lrp.TunnelClosed, Problem: "there is no tunnel", Mend: "a route"}, Fail, "there is no tunnel"},
	} {
		c.cell.ID = "edge"
		all := Tunnels([]lrp.CellUse{{Cell: lrp.Cell{ID: "cupola"}}, {Cell: c.cell}})
		if len(all) != 1 || all[0].Name != "tunnel edge" || all[0].Level != c.want || all[0].Detail != c.detail || (all[0].Fix != "") != (c.want != OK) {
			t.Errorf("%+v: got %+v", c.cell, all)
			continue
		}
		if c.cell.Mend != "" && all[0].Fix != c.cell.Mend {
			t.Errorf("got the fix %q; want %q", all[0].Fix, c.cell.Mend)
		}
	}
}
