package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"cupola/bench/report"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// appPath is the app in its containers.
const appPath = contract.AppDir + "/app"

// rest is how long the machine is left alone before each start, so that what is made ready for the next instance is.
const rest = 500 * time.Millisecond

// limits are those of every container here.
var limits = container.Limits{MemoryBytes: 64 << 20, CPUShares: 256, Pids: 1024}

// way is a way to start a container and see its first byte.
type way struct {
	name  string
	start func(ctx context.Context, id string) (time.Duration, error)
	took  []time.Duration
	cpu   []time.Duration // of this process and all that it has started
}

// firstBytes measures all ways by turns, and one round more than it counts.
func firstBytes(ctx context.Context, w *world, r *runc, rounds int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ways := []*way{
		{name: "runc run", start: r.firstByte},
		{name: "engine runc", start: func(ctx context.Context, id string) (time.Duration, error) {
			return w.engineStart(ctx, w.runc, id, time.Now(), "")
		}},
		{name: "engine launch", start: func(ctx context.Context, id string) (time.Duration, error) {
			return w.engineStart(ctx, w.engine, id, time.Now(), "")
		}},
		{name: "engine launch + network", start: w.networkFirstByte},
		{name: "cell: root + network + identity + engine + log", start: w.cellFirstByte},
	}
	for round := range rounds + 1 {
		for n, way := range ways {
			<-time.After(rest)
			before := cpuTime()
			took, err := way.start(ctx, fmt.Sprintf("first-%d-%d", n, round))
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if round > 0 {
				way.took, way.cpu = append(way.took, took), append(way.cpu, cpuTime()-before)
			}
		}
	}
	fmt.Printf("Start to the first byte of output, median of %d by turns:\n\n", rounds)
	base, baseCPU := report.Median(ways[0].took), report.Median(ways[0].cpu)
	table := report.NewTable("container", "ms", "min", "p90", "× runc", "CPU ms", "× runc")
	for _, way := range ways {
		m := report.Median(way.took)
		table.Add(way.name, ms(m), ms(slices.Min(way.took)), ms(report.Quantile(way.took, 0.9)), ratio(m, base), ms(report.Median(way.cpu)), ratio(report.Median(way.cpu), baseCPU))
	}
	table.Print(os.Stdout)
	return nil
}

// cpuTime is what this process has used, and all its children that have ended, with theirs.
func cpuTime() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			panic(err) // it fails for bad arguments alone
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

func ms(d time.Duration) string { return report.Figure(report.MS(d), 1) }

func ratio(d, base time.Duration) string { return report.Figure(float64(d)/float64(base), 2) }

// firstByte is that of `runc run`; what comes after it is not counted.
func (r *runc) firstByte(ctx context.Context, id string) (time.Duration, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := r.command(ctx, "run", "--bundle", r.path("once"), id)
	cmd.Stdout, cmd.Stderr = in, os.Stderr
	begin := time.Now()
	err = cmd.Start()
	in.Close()
	if err != nil {
		return 0, err
	}
	took, err := readByte(out, begin)
	if waited := cmd.Wait(); waited != nil {
		err = waited
	}
	return took, err
}

func (w *world) networkFirstByte(ctx context.Context, id string) (time.Duration, error) {
	begin := time.Now()
	a, err := w.net.Acquire(ctx, id)
	if err != nil {
		return 0, err
	}
	took, err := w.engineStart(ctx, w.engine, id, begin, a.NetNS)
	if err != nil {
		return 0, err
	}
	return took, w.net.Release(ctx, id)
}

func (w *world) engineStart(ctx context.Context, engine *container.Engine, id string, begin time.Time, netns string) (time.Duration, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	_, err = engine.Start(ctx, w.spec(id, netns, in, appPath))
	in.Close()
	if err != nil {
		return 0, err
	}
	took, err := readByte(out, begin)
	if err != nil {
		return 0, err
	}
	if _, err := engine.Wait(ctx, id); err != nil {
		return 0, err
	}
	return took, engine.Remove(ctx, id)
}

func (w *world) spec(id, netns string, out *os.File, args ...string) container.Spec {
	spec := container.Spec{
		ID: id, Rootfs: w.root.Path, Hostname: "bench", NetNS: netns, Limits: limits, Stdout: out, Stderr: out,
		Process: container.Process{Args: args, Env: []string{"PATH=/bin"}, UID: contract.VcapID, GID: contract.VcapID},
	}
	for _, m := range w.root.Binds {
		spec.Mounts = append(spec.Mounts, container.Mount{Source: m.Source, Destination: m.Destination, ReadOnly: m.ReadOnly})
	}
	return spec
}

// cellFirstByte is the first line as the cell hands it to the log: what an
// app's user sees.
func (w *world) cellFirstByte(ctx context.Context, id string) (time.Duration, error) {
	return w.firstByteOn(ctx, id, "preloaded:minifs")
}

func (w *world) firstByteOn(ctx context.Context, id, rootFS string) (time.Duration, error) {
	instance := w.instance(id)
	instance.RootFS = rootFS
	begin := time.Now()
	w.cell.Start(instance)
	if _, err := await(ctx, w.lines, 1); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	_, err := await(ctx, w.ended, 1)
	return took, err
}

func (w *world) instance(guid string, args ...string) lrp.Container {
	return lrp.Container{
		GUID: guid, Kind: lrp.KindInstance, ProcessGUID: "p",
		RunInfo: lrp.RunInfo{
			RootFS: "preloaded:minifs", Layers: []lrp.Layer{{Source: lrp.Blobbed(w.digest), Dest: contract.Home}},
			Action:   lrp.Run{Path: appPath, Args: args, User: contract.VcapName}.Action(),
			MemoryMB: int(limits.MemoryBytes >> 20), DiskMB: 64, CPUWeight: 25, MaxPids: int(limits.Pids), LogRateLimitByte: -1, Ports: []uint16{8080},
			Log: lrp.LogTarget{GUID: guid, Source: "APP"},

			OrganizationalUnits: []string{"organization:bench", "space:bench", "app:bench"}, SystemCertificatesPath: "/etc/cf-system-certificates",
		},
	}
}

func readByte(r io.Reader, begin time.Time) (time.Duration, error) {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("read the first byte: %w", err)
	}
	return time.Since(begin), nil
}
