// Command flame draws what the processors do in some programs while a command runs, as a flame graph: an SVG whose
// boxes are functions, each as wide as its share of the processors' time, on top of those that called it. It samples with perf,
// kernel included, and needs root. Programs need their symbols: build them without "-ldflags -s".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cupola/bench/report"
)

func main() {
	programs := flag.String("programs", "cupola", "the programs by the names of their files, with commas")
	out := flag.String("o", "flame.svg", "the file to write")
	title := flag.String("title", "", "what the graph is headed")
	flag.Parse()
	report.Main(time.Hour, func(ctx context.Context) error {
		if flag.NArg() == 0 {
			return errors.New("name the command to run: flame [flags] COMMAND [ARGUMENT...]")
		}
		return draw(ctx, *out, *title, strings.Split(*programs, ","), flag.Args())
	})
}

// draw samples while the command runs, and writes the graph.
func draw(ctx context.Context, out, title string, programs, command []string) error {
	dir, err := os.MkdirTemp("", "bench-flame-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "perf.data")
	record := exec.CommandContext(ctx, "perf", append([]string{"record", "-q", "-a", "-g", "-F", "199", "-o", data, "--"}, command...)...)
	record.Stdout, record.Stderr = os.Stderr, os.Stderr
	if err := record.Run(); err != nil {
		return fmt.Errorf("perf record: %w", err)
	}
	script := exec.CommandContext(ctx, "perf", "script", "-i", data, "-F", "comm,ip,sym")
	samples, err := script.StdoutPipe()
	if err == nil {
		err = script.Start()
	}
	if err != nil {
		return fmt.Errorf("perf script: %w", err)
	}
	root := &frame{}
	if err := errors.Join(root.read(samples, programs), script.Wait()); err != nil {
		return fmt.Errorf("perf script: %w", err)
	}
	if root.samples == 0 {
		return fmt.Errorf("no sample of %s: name the programs that the command runs with -programs", strings.Join(programs, ", "))
	}
	return os.WriteFile(out, svg(root, title), 0o644) //nolint:gosec // for all to read
}
