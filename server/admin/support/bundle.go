package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"cupola/runtime/fault"
	"cupola/server/admin/disk"
	"cupola/server/machine"
	"cupola/store"
	"cupola/store/cf"
)

// File is one file of a bundle.
type File struct {
	Name    string
	Content []byte
}

// Source is what a bundle is collected from. Without a daemon the fields below the blank
// line are nil.
type Source struct {
	Store *store.Store
	Disk  *disk.Keeper

	Version string
	Config  map[string]any // by the flag's name, without secrets
	Machine func(context.Context) machine.State
	Checks  func(context.Context) ([]machine.Check, error) // what doctor finds
	Log     *Log
}

// partTime is how long one part may take: a bundle is made of daemons that hang, too.
const partTime = 30 * time.Second

// part is one file and how it is made.
type part struct {
	name string
	make func(context.Context) ([]byte, error)
}

// Collect makes the files. What fails, or takes too long, is left out, and errors.txt
// says so.
func (s *Source) Collect(ctx context.Context) ([]File, error) {
	var files []File
	var faults bytes.Buffer
	for _, p := range s.parts() {
		content, err := within(ctx, p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(&faults, "%s: %v\n", p.name, err)
		}
		if len(content) > 0 {
			files = append(files, File{p.name, content})
		}
	}
	if faults.Len() > 0 {
		files = append(files, File{"errors.txt", scrub(faults.Bytes())})
	}
	return files, nil
}

// within makes a part, and leaves it behind if it takes too long.
func within(ctx context.Context, p part) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	type made struct {
		content []byte
		err     error
	}
	done := make(chan made, 1)
	fault.Go("support", func() {
		var m made
		m.err = fault.Guard("support", func() (err error) {
			m.content, err = p.make(ctx)
			return err
		})
		done <- m
	})
	select {
	case m := <-done:
		return m.content, m.err
	case <-ctx.Done():
		return nil, fmt.Errorf("it took longer than %s", partTime)
	}
}

func (s *Source) parts() []part {
	all := []part{{"rows.json", s.rows}, {"disk.json", s.disk}, {"alerts.json", s.alerts}}
	if s.Machine == nil {
		return all
	}
	return append([]part{
		{"version.json", s.version},
		{"config.json", func(context.Context) ([]byte, error) { return indented(s.Config) }},
		{"status.json", func(ctx context.Context) ([]byte, error) { return indented(s.Machine(ctx)) }},
		{"log.jsonl", func(context.Context) ([]byte, error) { return scrub(s.Log.Text()), nil }},
		{"process.txt", func(context.Context) ([]byte, error) { return process() }},
		{"goroutines.txt", func(context.Context) ([]byte, error) { return profile("goroutine", 2) }},
		{"heap.pprof", func(context.Context) ([]byte, error) { return profile("heap", 0) }},
		{"doctor.json", s.doctor},
	}, all...)
}

func (s *Source) version(context.Context) ([]byte, error) {
	v := map[string]any{"version": s.Version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "cpus": runtime.NumCPU(), "collected_at": time.Now().UTC()}
	modules := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			modules[m.Path] = m.Version
		}
	}
	v["modules"] = modules
	return indented(v)
}

func (s *Source) doctor(ctx context.Context) ([]byte, error) {
	found, err := s.Checks(ctx)
	if err != nil {
		return nil, err
	}
	text, err := indented(found)
	return scrub(text), err
}

func (s *Source) rows(ctx context.Context) ([]byte, error) {
	var n map[string]int64
	if err := s.Store.Read(ctx, func(tx *store.Tx) (err error) { n, err = tx.CountAll(); return err }); err != nil {
		return nil, err
	}
	return indented(n)
}

func (s *Source) disk(ctx context.Context) ([]byte, error) {
	u, err := s.Disk.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return indented(u)
}

// alert is an alert without what users can choose: names, URLs of drains, and texts
// with an app's last lines.
type alert struct {
	Rule       string           `json:"rule"`
	Severity   cf.AlertSeverity `json:"severity"`
	State      cf.AlertState    `json:"state"`
	CreatedAt  time.Time        `json:"created_at"`
	FiredAt    time.Time        `json:"fired_at"`
	ResolvedAt time.Time        `json:"resolved_at"`
	Repeats    int              `json:"repeats"`
}

func (s *Source) alerts(ctx context.Context) ([]byte, error) {
	var rows []*cf.Alert
	if err := s.Store.Read(ctx, func(tx *store.Tx) (err error) { rows, err = store.Alerts.All(tx); return err }); err != nil {
		return nil, err
	}
	all := []alert{}
	for _, a := range rows {
		all = append(all, alert{a.Rule, a.Severity, a.State, a.CreatedAt.UTC(), a.FiredAt.UTC(), a.ResolvedAt.UTC(), a.Repeats})
	}
	return indented(all)
}

// profile is one of the runtime's. It has the names of functions and numbers, and no
// content of memory.
func profile(name string, debug int) ([]byte, error) {
	p := pprof.Lookup(name)
	if p == nil {
		return nil, errors.New("the runtime has no such profile")
	}
	var b bytes.Buffer
	err := p.WriteTo(&b, debug)
	return b.Bytes(), err
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

// Write packs files below a directory as a tar.gz.
func Write(w io.Writer, dir string, files []File) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	now := time.Now().Truncate(time.Second)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: dir + "/" + f.Name, Mode: 0o600, Size: int64(len(f.Content)), ModTime: now, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := t.Write(f.Content); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
