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

// TestBackupLags finds the addresses that are behind for longer than the threshold, and than the configuration has it.
func TestBackupLags(t *testing.T) {
	reaches := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := Parts{BackupLags: func() []BackupLag {
		return []BackupLag{{To: "well", Seconds: 59, Due: 30}, {To: "slow", Seconds: 100, Due: 120}, {To: "gone", Seconds: 61, Due: 30, Reaches: reaches, Error: "no route"}, {To: "new", Seconds: 90, Due: 30}}
	}}
	found, err := p.backupLags(t.Context(), map[string]Rule{OffsiteChanges: {Threshold: 60}}, reaches)
	if err != nil || len(found) != 2 || found[0].Name != "gone" || found[1].Name != "new" {
		t.Fatalf("got %+v, %v", found, err)
	}
	if want := "What changed since 2026-01-01T12:00:00Z is not there: no route"; found[0].Text != want {
		t.Errorf("got %q; want %q", found[0].Text, want)
	}
	if want := "What changed since the last backup is not there."; found[1].Text != want {
		t.Errorf("got %q; want %q", found[1].Text, want)
	}
}

// TestBackupFailures tells a backup that was made before something failed from one that was not.
func TestBackupFailures(t *testing.T) {
	tried := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := Parts{Backups: func() []BackupFailure {
		return []BackupFailure{{To: "away", Tried: tried, Error: "no route"}, {To: "full", Tried: tried, Made: true, Error: "the backup one was made, but old ones were not removed"}}
	}}
	found, err := p.backups(t.Context(), nil, tried)
	if err != nil || len(found) != 2 {
		t.Fatalf("got %+v, %v", found, err)
	}
	for n, want := range []string{"The backup of 2026-01-01T12:00:00Z was not made: no route", "At the last backup: the backup one was made, but old ones were not removed"} {
		if found[n].Text != want {
			t.Errorf("got %q; want %q", found[n].Text, want)
		}
	}
}
