package cells

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/simulate"
)

// SimulateCmd is cupola simulate.
type SimulateCmd struct {
	Cells     int    `help:"Number of cells." default:"100"`
	Instances int    `help:"Number of app instances, in processes of 1 to 9." default:"10000"`
	Script    string `help:"Events, separated by commas: start; lose N, return N, leave N (cells); crash N (instances); deploy N (apps); tasks N; wait DURATION. N may be a percentage. By default some of each." placeholder:"STEPS"`
	Seed      uint64 `help:"Random seed; the same seed gives the same fleet." default:"1"`
	JSON      bool   `help:"Print JSON." name:"json"`
}

// maxFleet bounds the cells and the instances, which are all kept in memory.
const maxFleet = 10_000_000

// Run replays the fleet. It needs no daemon and no root.
func (s *SimulateCmd) Run(e *command.Env) error {
	if s.Cells < 1 || s.Instances < 1 || s.Cells > maxFleet || s.Instances > maxFleet {
		return fmt.Errorf("invalid --cells or --instances: give 1 to %d", maxFleet)
	}
	script, err := simulate.ParseScript(cmp.Or(s.Script, simulate.DefaultScript))
	if err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	const row = "%-12s %6s %8s %12s %9s %9s %8s %6s\n" // within 80 columns
	if !s.JSON {
		fmt.Fprintf(e.Out, "%d cells, %d instances, seed %d\n\n", s.Cells, s.Instances, s.Seed)
		fmt.Fprintf(e.Out, row, "STEP", "TICKS", "ACTIONS", "LONGEST PLAN", "ITS CPU", "ALLOCATED", "RUNNING", "DENIED")
	}
	tell := func(m simulate.Measure) {
		if !s.JSON {
			fmt.Fprintf(e.Out, row, m.Step, fmt.Sprint(m.Ticks), fmt.Sprint(m.Actions), millis(m.Longest), millis(m.CPU), command.BytesText(int64(m.AllocBytes)), fmt.Sprint(m.Running), fmt.Sprint(m.Denied))
		}
	}
	r, err := simulate.Run(e.Ctx, simulate.Config{Cells: s.Cells, Instances: s.Instances, Seed: s.Seed}, script, tell)
	if err != nil {
		return err
	}
	if s.JSON {
		return command.WriteJSON(e.Out, r)
	}
	tell(r.Idle)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	q := r.Quality
	lines := []string{
		fmt.Sprintf("memory of the cells given away: %.1f %% (%.1f to %.1f, deviation %.1f)", 100*q.MeanUsed, 100*q.LeastUsed, 100*q.MostUsed, 100*q.Deviation),
		fmt.Sprintf("processes with two instances on one cell: %d of %d; at most %d on one", q.Together, q.Processes, q.MostTogether),
		fmt.Sprintf("memory of this process: %s", command.BytesText(int64(m.Sys))),
	}
	_, err = fmt.Fprintf(e.Out, "\n%s\n", strings.Join(lines, "\n"))
	return err
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
