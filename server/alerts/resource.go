package alerts

import (
	"context"
	"fmt"
	"time"

	"cupola/server/machine"
)

// largeDisk is so much free space that a disk is not short, however small a part of
// it that is.
const largeDisk = 50 << 30

// firstCopy is how long after the start a database without a backup is nothing to report.
const firstCopy = time.Hour

// machine finds what is short on the machine.
func (p *Parts) machine(ctx context.Context, rules map[string]Rule, now time.Time) (found []Finding, err error) {
	s := p.Machine(ctx)
	for _, judge := range []func(machine.State, map[string]Rule) (Finding, bool){judgeDisk, judgeMemory, judgeLoad} {
		if f, is := judge(s, rules); is {
			found = append(found, f)
		}
	}
	if f, is := judgeBackup(s.Backup, rules[DatabaseBackup].Threshold, now, p.Started); is {
		found = append(found, f)
	}
	return found, nil
}

func judgeDisk(s machine.State, rules map[string]Rule) (f Finding, is bool) {
	d, least := s.Disk, rules[DiskShort].Threshold
	f = Finding{Rule: DiskShort, Subject: "disk", Name: d.Path, Mend: "sudo cupola disk"}
	switch free := percent(d.Available, d.Total); {
	case d.Total > 0 && free < least && d.Available < largeDisk:
		f.Text = fmt.Sprintf("%s of %s are free (%.0f %%).", sizeText(d.Available), sizeText(d.Total), free)
	case d.Inodes > 0 && percent(d.InodesFree, d.Inodes) < least/2:
		f.Text = fmt.Sprintf("%d of %d inodes are free (%.0f %%).", d.InodesFree, d.Inodes, percent(d.InodesFree, d.Inodes))
	default:
		return f, false
	}
	return f, true
}

func judgeMemory(s machine.State, rules map[string]Rule) (f Finding, is bool) {
	m := s.Memory
	free := percent(m.Available, m.Total)
	return Finding{Rule: MemoryShort, Subject: "memory", Name: s.Hostname, Mend: "sudo cupola top",
		Text: fmt.Sprintf("%s of %s of memory are available (%.0f %%).", sizeText(m.Available), sizeText(m.Total), free)}, m.Total > 0 && free < rules[MemoryShort].Threshold
}

// judgeLoad looks at the time that some task waited for a resource. Of memory and the
// disk, half of that time is as bad: a task that waits for them does nothing else.
func judgeLoad(s machine.State, rules map[string]Rule) (f Finding, is bool) {
	most := rules[Overloaded].Threshold
	f = Finding{Rule: Overloaded, Subject: "load", Name: s.Hostname, Mend: "sudo cupola top"}
	for _, r := range []struct {
		resource, text string
		part           float64
	}{{"memory", "memory", 0.5}, {"io", "the disk", 0.5}, {"cpu", "a processor", 1}} {
		for _, p := range s.Pressure[r.resource] {
			if p.Kind == "some" && p.Avg300 > most*r.part {
				f.Text = fmt.Sprintf("In the last five minutes, tasks waited for %s for %.0f %% of the time.", r.text, p.Avg300)
				return f, true
			}
		}
	}
	const perCPU = 8 // that many tasks for each processor
	if len(s.Pressure) == 0 && len(s.Load) > 1 && s.CPUs > 0 && s.Load[1] > perCPU*float64(s.CPUs)*most/100 {
		f.Text = fmt.Sprintf("The load of five minutes is %.1f on %d processors.", s.Load[1], s.CPUs)
		return f, true
	}
	return f, false
}

func judgeBackup(b *machine.Backup, hours float64, now, started time.Time) (f Finding, is bool) {
	f = Finding{Rule: DatabaseBackup, Subject: "database", Name: "database", Mend: "sudo journalctl -u cupola | grep 'backup of the database'"}
	late := time.Duration(hours * float64(time.Hour))
	switch {
	case b == nil:
		f.Text = "The database has no automatic backup."
		return f, now.Sub(started) > firstCopy
	case now.Sub(b.MadeAt) > late:
		f.Text = fmt.Sprintf("The last automatic backup of the database is of %s.", b.MadeAt.UTC().Format(time.RFC3339))
		return f, true
	}
	return f, false
}

func percent(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// sizeText is a number of bytes for people.
func sizeText(n uint64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GB", n>>30)
	}
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MB", n>>20)
}
