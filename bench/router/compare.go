package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"cupola/bench/report"
)

// compare measures the targets by turns and prints the medians, beside those of the one
// with the index base. The ratios are medians of those of each round, so that a load that
// comes and goes tells less.
func compare(ctx context.Context, k kind, targets []*process, base, rounds int, length time.Duration) error {
	table := report.NewTable("server", "connections", "each second", "× nginx", "p99, ms", "× nginx", "CPU, µs for each", "× nginx", "errors")
	for _, connections := range k.connections {
		results := make([][]result, len(targets))
		for range rounds {
			for i, target := range targets {
				r, err := k.load(ctx, target, connections, length)
				if err != nil {
					return err
				}
				results[i] = append(results[i], r)
			}
		}
		for i, target := range targets {
			table.Add(row(target.name, connections, results[i], results[base])...)
		}
	}
	table.Print(os.Stdout)
	return nil
}

func row(name string, connections int, own, base []result) []string {
	rate := func(r result) float64 { return r.perSecond }
	p99 := func(r result) float64 { return report.MS(r.p99) }
	cpu := func(r result) float64 { return float64(r.cpu) / float64(time.Microsecond) }
	errors := 0
	for _, r := range own {
		errors += r.errors
	}
	latency, times := "–", "–"
	if own[0].p99 > 0 {
		latency, times = report.Figure(report.Median(figures(own, p99)), 2), report.Figure(report.Median(ratios(own, base, p99)), 2)
	}
	return []string{
		name, strconv.Itoa(connections),
		report.Figure(report.Median(figures(own, rate)), 0), report.Figure(report.Median(ratios(own, base, rate)), 2),
		latency, times,
		report.Figure(report.Median(figures(own, cpu)), 1), report.Figure(report.Median(ratios(own, base, cpu)), 2), strconv.Itoa(errors),
	}
}

func figures(all []result, of func(result) float64) (values []float64) {
	for _, r := range all {
		values = append(values, of(r))
	}
	return values
}

func ratios(own, base []result, of func(result) float64) (values []float64) {
	for i := range own {
		values = append(values, of(own[i])/of(base[i]))
	}
	return values
}
