package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"cupola/bench/report"
)

// runcShare is which part of the count runc starts, whose removal takes 100 ms
// each.
const runcShare = 10

// crowd is a way to start many containers and to take them away again.
type crowd struct {
	name        string
	count       int
	start, stop func(ctx context.Context, count int) error
	up, down    []time.Duration
}

// density measures crowds by turns: one container after another with an empty network
// by runc, one after another with a separate network by the engine launch, and all at once by
// the cell.
func density(ctx context.Context, w *world, r *runc, rounds, count int) error {
	ctx, cancel := context.WithTimeout(ctx, 150*time.Second)
	defer cancel()
	crowds := []*crowd{
		{name: "runc run -d, empty network", count: max(1, count/runcShare), start: r.startMany, stop: r.stopMany},
		{name: "engine + network, one by one", count: count, start: w.startMany, stop: w.stopMany},
		{name: "cell, all at once", count: count, start: w.launchMany, stop: w.haltMany},
	}
	for range rounds {
		for _, c := range crowds {
			if err := c.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	fmt.Printf("Many containers, median of %d by turns:\n\n", rounds)
	table := report.NewTable("containers", "count", "started, s", "ms each", "× runc", "removed, s")
	base := crowds[0].each()
	for _, c := range crowds {
		table.Add(c.name, strconv.Itoa(c.count), report.Figure(report.Median(c.up).Seconds(), 2), ms(c.each()),
			ratio(c.each(), base), report.Figure(report.Median(c.down).Seconds(), 2))
	}
	table.Print(os.Stdout)
	return nil
}

func (c *crowd) measure(ctx context.Context) error {
	begin := time.Now()
	if err := c.start(ctx, c.count); err != nil {
		return err
	}
	c.up = append(c.up, time.Since(begin))
	begin = time.Now()
	if err := c.stop(ctx, c.count); err != nil {
		return err
	}
	c.down = append(c.down, time.Since(begin))
	return nil
}

func (c *crowd) each() time.Duration { return report.Median(c.up) / time.Duration(c.count) }

func densityID(n int) string { return "many-" + strconv.Itoa(n) }

func (r *runc) startMany(ctx context.Context, count int) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	defer in.Close()
	for n := range count {
		cmd := r.command(ctx, "run", "--detach", "--bundle", r.path("sleep"), densityID(n))
		cmd.Stdout, cmd.Stderr = in, in
		if err := cmd.Run(); err != nil {
			return err
		}
		if _, err := readByte(out, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (r *runc) stopMany(ctx context.Context, count int) error {
	for n := range count {
		if out, err := r.command(ctx, "delete", "--force", densityID(n)).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

func (w *world) startMany(ctx context.Context, count int) error {
	for n := range count {
		a, err := w.net.Acquire(ctx, densityID(n))
		if err != nil {
			return err
		}
		if _, err := w.engine.Start(ctx, w.spec(densityID(n), a.NetNS, nil, appPath, "sleep")); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) stopMany(ctx context.Context, count int) error {
	for n := range count {
		if err := w.engine.Remove(ctx, densityID(n)); err != nil {
			return err
		}
		if err := w.net.Release(ctx, densityID(n)); err != nil {
			return err
		}
	}
	return nil
}

// launchMany is done when the line of every app has come.
func (w *world) launchMany(ctx context.Context, count int) error {
	for n := range count {
		w.cell.Start(w.instance(densityID(n), "sleep"))
	}
	_, err := await(ctx, w.lines, count)
	return err
}

func (w *world) haltMany(ctx context.Context, count int) error {
	for n := range count {
		w.cell.Stop(densityID(n))
	}
	_, err := await(ctx, w.ended, count)
	return err
}
