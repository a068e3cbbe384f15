package alerts

import (
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// TestCells finds cells that do not answer, and those whose instances get no requests.
func TestCells(t *testing.T) {
	p := Parts{Cells: func() []lrp.CellUse {
		return []lrp.CellUse{{Cell: lrp.Cell{ID: "well"}}, {Cell: lrp.Cell{ID: "away", Unreachable: true}}, {Cell: lrp.Cell{ID: "hidden", Problem: "there is no tunnel"}}}
	}}
	found, err := p.cells(t.Context(), nil, time.Time{})
	if err != nil || len(found) != 2 || found[0].Name != "away" || found[1].Name != "hidden" || found[0].Text == found[1].Text {
		t.Errorf("got %+v, %v", found, err)
	}
}
