package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/machine"
)

// TopCmd is cupola top.
type TopCmd struct {
	capi.Flags
	Sort     string        `help:"Column to sort by: cpu, memory, requests, disk, logs or name." default:"cpu" enum:"cpu,memory,requests,disk,logs,name"`
	Interval time.Duration `help:"Time between two samples." default:"2s"`
	Once     bool          `help:"Print one screen and exit; the default when the output is not a terminal."`
	JSON     bool          `help:"Print one sample as JSON." name:"json"`
}

// use is what the instances of a process use now.
type use struct {
	Process     string  `json:"process"`
	Instances   int     `json:"instances"`
	CPU         float64 `json:"cpu_percent"` // of one processor
	MemoryBytes uint64  `json:"memory_bytes"`
	MemoryQuota uint64  `json:"memory_quota_bytes"`
	DiskBytes   uint64  `json:"disk_bytes"`
	LogRate     uint64  `json:"log_bytes_per_second"`
	Requests    float64 `json:"requests_per_second"`
}

const minInterval = 500 * time.Millisecond

// Run shows what runs until q is pressed.
func (c *TopCmd) Run(e *command.Env) error {
	if c.Interval < minInterval {
		return fmt.Errorf("invalid --interval %s: give at least %s", c.Interval, minInterval)
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	sample := func(ctx context.Context) (u machine.Use, err error) {
		return u, api.Call(ctx, "GET", "/v1/machine/use", nil, &u)
	}
	if e.Terminal && !c.Once && !c.JSON {
		return c.live(e, sample)
	}
	first, err := sample(e.Ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(c.Interval):
	case <-e.Ctx.Done():
		return errors.New("interrupted")
	}
	next, err := sample(e.Ctx)
	if err != nil {
		return err
	}
	all := between(first, next)
	order(all, c.Sort)
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	_, err = io.WriteString(e.Out, strings.Join(view{State: next.Machine, uses: all, width: command.Width(e)}.lines(), "\n")+"\n")
	return err
}

// live draws samples until q is pressed. A daemon that does not answer for a while ends
// nothing.
func (c *TopCmd) live(e *command.Env, sample func(context.Context) (machine.Use, error)) error {
	last, err := sample(e.Ctx)
	if err != nil {
		return err
	}
	s, err := openScreen(e)
	if err != nil {
		return err
	}
	defer s.close()
	v := view{State: last.Machine, uses: between(last, last), by: c.Sort}
	tick := time.NewTimer(minInterval) // rates are known soon
	defer tick.Stop()
	for {
		order(v.uses, v.by)
		v.width, v.height = s.size()
		s.draw(v.lines())
		select {
		case <-e.Ctx.Done():
			return nil
		case k := <-s.keys:
			if k == 'q' || k == 'Q' {
				return nil
			}
			v.by = sortedBy(k, v.by)
		case <-tick.C:
			tick.Reset(c.Interval)
			next, err := sample(e.Ctx)
			if v.fault = ""; err != nil {
				v.fault = err.Error()
				continue
			}
			v.State, v.uses, last = next.Machine, between(last, next), next
		}
	}
}

// sorts are the columns to sort by, each with its key.
var sorts = []struct {
	key  byte
	name string
}{{'c', "cpu"}, {'m', "memory"}, {'r', "requests"}, {'d', "disk"}, {'l', "logs"}, {'n', "name"}}

// sortedBy is the column after a key.
func sortedBy(key byte, by string) string {
	for _, s := range sorts {
		if key == s.key {
			return s.name
		}
	}
	return by
}

// between is what processes used between two samples. What an instance used before it
// was first seen counts nothing.
func between(a, b machine.Use) []use {
	before := map[string]float64{}
	for _, i := range a.Instances {
		before[i.GUID] = i.CPUSeconds
	}
	seconds := max(b.At.Sub(a.At).Seconds(), 0.001)
	at, all := map[string]int{}, []use{}
	for _, i := range b.Instances {
		n, known := at[i.Process]
		if !known {
			n = len(all)
			at[i.Process] = n
			all = append(all, use{Process: i.Process, Requests: max(float64(b.Requests[i.AppGUID]-a.Requests[i.AppGUID])/seconds, 0)})
		}
		u := &all[n]
		u.Instances, u.MemoryBytes, u.MemoryQuota = u.Instances+1, u.MemoryBytes+i.MemoryBytes, u.MemoryQuota+i.MemoryQuota
		u.DiskBytes, u.LogRate = u.DiskBytes+i.DiskBytes, u.LogRate+i.LogRate
		if was, known := before[i.GUID]; known {
			u.CPU += max(100*(i.CPUSeconds-was)/seconds, 0)
		}
	}
	return all
}

func order(all []use, by string) {
	slices.SortFunc(all, func(a, b use) int {
		n := 0
		switch by {
		case "cpu":
			n = cmp.Compare(b.CPU, a.CPU)
		case "memory":
			n = cmp.Compare(b.MemoryBytes, a.MemoryBytes)
		case "requests":
			n = cmp.Compare(b.Requests, a.Requests)
		case "disk":
			n = cmp.Compare(b.DiskBytes, a.DiskBytes)
		case "logs":
			n = cmp.Compare(b.LogRate, a.LogRate)
		}
		return cmp.Or(n, strings.Compare(a.Process, b.Process))
	})
}

// view is what one screen shows. A width or a height of 0 bounds nothing.
type view struct {
	machine.State
	uses          []use // in order
	by            string
	fault         string // why there is nothing newer
	width, height int
}

// wideScreen is the width from which disk and logs have columns, too.
const wideScreen = 110

func (v view) lines() []string {
	load := ""
	if len(v.Load) == 3 {
		load = fmt.Sprintf("   load %.2f %.2f %.2f", v.Load[0], v.Load[1], v.Load[2])
	}
	lines := []string{
		fmt.Sprintf("cupola %s on %s, up for %s", v.Version, v.Hostname, shortTime(v.Now.Sub(v.StartedAt))),
		fmt.Sprintf("processors %s %3.0f %% of %d%s", bar(v.CPUUsed), 100*v.CPUUsed, v.CPUs, load),
		fmt.Sprintf("memory %s   disk %s", useText(v.Memory.Total-v.Memory.Available, v.Memory.Total), useText(v.Disk.Total-v.Disk.Available, v.Disk.Total)),
		"",
		v.row("CPU %", "MEMORY", "OF", "REQ/S", "DISK", "LOG/S", "INST", "PROCESS"),
	}
	room := len(v.uses)
	if v.height > 0 {
		room = max(v.height-len(lines)-1, 0)
	}
	for _, u := range v.uses[:min(room, len(v.uses))] {
		quota := "-"
		if u.MemoryQuota > 0 {
			quota = bytesText(u.MemoryQuota)
		}
		lines = append(lines, v.row(fmt.Sprintf("%.1f", u.CPU), bytesText(u.MemoryBytes), quota, fmt.Sprintf("%.1f", u.Requests), bytesText(u.DiskBytes), bytesText(u.LogRate), fmt.Sprint(u.Instances), command.Printable(u.Process)))
	}
	if v.height > 0 {
		for len(lines) < v.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:max(v.height-1, 0)], v.footer())
	}
	for n, l := range lines {
		if text := []rune(l); v.width > 0 && len(text) > v.width {
			lines[n] = string(text[:v.width])
		}
	}
	return lines
}

// row is a line of the table. A name that is too long loses its beginning: the app's is
// at its end.
func (v view) row(cpu, memory, quota, requests, disk, logs, instances, process string) string {
	text := fmt.Sprintf("%7s %8s %8s %8s", cpu, memory, quota, requests)
	if v.width == 0 || v.width >= wideScreen {
		text += fmt.Sprintf(" %8s %8s", disk, logs)
	}
	text += fmt.Sprintf(" %5s  ", instances)
	name := []rune(process)
	if room := v.width - len(text); v.width > 0 && len(name) > room && room > 1 {
		name = append([]rune("…"), name[len(name)-room+1:]...)
	}
	return text + string(name)
}

func (v view) footer() string {
	if v.fault != "" {
		return command.Printable("no answer: " + v.fault)
	}
	return fmt.Sprintf("by %s   sort: c cpu, m memory, r requests, d disk, l logs, n name   q quit", v.by)
}
