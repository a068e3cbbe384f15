// Command console measures the web console in Chromium, with a thousand apps.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

//go:embed browser.mjs
var script []byte

const (
	apps         = 1000
	routes       = 900 // a default quota has a thousand
	appsAtOnce   = 50
	linesASecond = 5000
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	modules := flag.String("modules", os.Getenv("CONSOLE_MODULES"), "the folder with node_modules/playwright-core")
	rounds := flag.Int("rounds", 5, "how often the list of apps is loaded, cold and warm")
	seconds := flag.Int("seconds", 60, "how long the log is watched")
	consoles := flag.Int("consoles", 10, "how many consoles are open at once")
	flag.Parse()
	report.Main(5*time.Minute, func(ctx context.Context) error { return measure(ctx, *binary, *modules, *rounds, *seconds, *consoles) })
}

func measure(ctx context.Context, binary, modules string, rounds, seconds, consoles int) error {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		live, noisy, err := prepare(ctx, d)
		if err != nil {
			return err
		}
		c, err := d.Login(ctx)
		if err != nil {
			return err
		}
		open, err := exec.CommandContext(ctx, binary, "open", "--url", "--data-dir", d.Dir).Output() //nolint:gosec // the measured build
		if err != nil {
			return fmt.Errorf("cupola open: %w", err)
		}
		api := "http://localhost:" + d.Port
		got, err := browse(ctx, modules, map[string]string{"API": api, "TOKEN": c.Authorization(), "OPEN": strings.TrimSpace(string(open)), "LIVE": live, "NOISY": noisy,
			"ROUNDS": strconv.Itoa(rounds), "SECONDS": strconv.Itoa(seconds), "CONSOLES": strconv.Itoa(consoles), "DAEMON": strconv.Itoa(d.PID()), "METRICS": "http://" + metrics + "/metrics"})
		if err != nil {
			return err
		}
		got.print()
		return nil
	}, "--metrics", metrics)
}

// freeAddress is one of the loopback on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// prepare makes the apps: all stopped but one to start and stop and one that logs.
func prepare(ctx context.Context, d *daemon.Daemon) (live, noisy string, err error) {
	dir, err := os.MkdirTemp("", "noisy")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	script := fmt.Sprintf("#!/bin/sh\nwhile :; do seq 1 %d | sed 's/^/line /'; sleep 0.1; done\n", linesASecond/10)
	manifest := "applications:\n- name: noisy\n  buildpacks: [binary_buildpack]\n  command: sh noisy.sh\n  health-check-type: process\n  no-route: true\n  memory: 64M\n"
	for name, text := range map[string]string{"noisy.sh": script, "manifest.yml": manifest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", "", err
		}
	}
	for _, app := range [][2]string{{"examples/static", "live"}, {dir, "noisy"}} {
		if err := d.Push(ctx, d.URL(), app[0], app[1]); err != nil {
			return "", "", err
		}
	}
	c, err := d.Login(ctx)
	if err != nil {
		return "", "", err
	}
	space, err := c.GUID(ctx, "/v3/spaces?names=dev")
	if err != nil {
		return "", "", err
	}
	for n := 0; n < apps; n += appsAtOnce {
		var b strings.Builder
		b.WriteString("applications:\n")
		for i := range appsAtOnce {
			fmt.Fprintf(&b, "- {name: bench-%d, memory: 16M, default-route: %t}\n", n+i, n < routes)
		}
		if err := c.Apply(ctx, "/v3/spaces/"+space+"/actions/apply_manifest", b.String()); err != nil {
			return "", "", err
		}
	}
	for { // the manifests are jobs
		var list struct {
			Pagination struct {
				Total int `json:"total_results"`
			}
		}
		if err := c.Call(ctx, http.MethodGet, "/v3/routes?per_page=1", nil, &list); err != nil {
			return "", "", err
		}
		if list.Pagination.Total == routes+1 {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	if live, err = c.GUID(ctx, "/v3/apps?names=live"); err != nil {
		return "", "", err
	}
	noisy, err = c.GUID(ctx, "/v3/apps?names=noisy")
	return live, noisy, err
}

// page is one load of the list of apps; times are in milliseconds.
type page struct {
	Paint, There, Key     float64
	Lists                 int
	ListBytes, AssetBytes float64
	Off                   int // requests to other hosts
}

// figures are what browser.mjs prints.
type figures struct {
	Cold, Warm []page
	Change     []float64                                                  // ms
	Memory     struct{ Before, After, Each, RSSBefore, RSSAfter float64 } // MB
	Logs       struct {
		Longest, Peak, Heap float64
		Long                int
		Status, Last        string
	}
}

func browse(ctx context.Context, modules string, env map[string]string) (f figures, err error) {
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(script), os.Stderr
	cmd.Env = append(os.Environ(), "MODULES="+modules)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("measure in Chromium: %w", err)
	}
	return f, json.Unmarshal(out, &f)
}

func (f *figures) print() {
	fmt.Printf("The list of %d apps, median of %d loads:\n\n", apps+2, len(f.Cold))
	t := report.NewTable("load", "first paint, ms", "rows there, ms", "a key of the filter, ms", "lists asked for", "list, kB", "scripts and styles, kB", "requests elsewhere")
	for _, c := range []struct {
		name  string
		pages []page
	}{{"cold", f.Cold}, {"warm", f.Warm}} {
		of := func(get func(page) float64) float64 {
			var all []float64
			for _, p := range c.pages {
				all = append(all, get(p))
			}
			return report.Median(all)
		}
		t.Add(c.name, report.Figure(of(func(p page) float64 { return p.Paint }), 0), report.Figure(of(func(p page) float64 { return p.There }), 0), report.Figure(of(func(p page) float64 { return p.Key }), 0),
			report.Figure(of(func(p page) float64 { return float64(p.Lists) }), 0), report.Figure(of(func(p page) float64 { return p.ListBytes / 1000 }), 0),
			report.Figure(of(func(p page) float64 { return p.AssetBytes / 1000 }), 1), report.Figure(of(func(p page) float64 { return float64(p.Off) }), 0))
	}
	t.Print(os.Stdout)
	slices.Sort(f.Change)
	fmt.Printf("An app's new state is shown after the API's answer in %.0f ms (median of %d), p95 %.0f ms.\n\n", report.Median(f.Change), len(f.Change), report.Quantile(f.Change, 0.95))
	fmt.Printf("A log of %d lines a second: the longest task took %.0f ms, %d took more than 100 ms; the tab held %.0f MB at most, of them %.0f MB of JavaScript's heap. It showed %s.\n\n",
		linesASecond, f.Logs.Longest, f.Logs.Long, f.Logs.Peak, f.Logs.Heap, f.Logs.Status)
	fmt.Printf("The daemon held %.1f MB in heap and stacks without a console, %.1f with consoles open: %.2f MB for each. With what is free in Go's heap and with garbage it had %.1f and %.1f MB of anonymous memory.\n\n",
		f.Memory.Before, f.Memory.After, f.Memory.Each, f.Memory.RSSBefore, f.Memory.RSSAfter)
}
