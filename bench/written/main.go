// Command written measures how much is written to the disk for an app, from the upload of its files to its start, on a new
// ext4 on a loop device. It needs root.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	before := flag.String("before", "", "another build, to be measured first")
	files := flag.Int("files", 105, "how many files of 1 MB the app has")
	flag.Parse()
	report.Main(10*time.Minute, func(ctx context.Context) error { return measure(ctx, *before, *binary, *files) })
}

func measure(ctx context.Context, before, binary string, files int) error {
	table := report.NewTable("build", "phase", "written, MB", "× size", "s")
	defer func() {
		fmt.Printf("An app of %d files of 1 MB that do not compress:\n\n", files)
		table.Print(os.Stdout)
	}()
	if before != "" {
		if err := onDisk(ctx, "before", before, files, table); err != nil {
			return err
		}
	}
	return onDisk(ctx, "cupola", binary, files, table)
}

// onDisk measures a build whose data directory is on its own file system.
func onDisk(ctx context.Context, name, binary string, files int, table *report.Table) (err error) {
	disk, remove, err := newDisk(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := os.Setenv("TMPDIR", disk.dir); err != nil {
		return err
	}
	defer os.Unsetenv("TMPDIR")
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		c, err := d.Login(ctx)
		if err != nil {
			return err
		}
		app := &app{Client: c, files: files}
		if err := app.create(ctx); err != nil {
			return err
		}
		return app.phases(ctx, name, disk, table)
	})
}

// app is an app on its way to a running instance.
type app struct {
	*daemon.Client
	files             int
	guid, bits, built string // the app, its package and its droplet
}

type doc = map[string]any

type made struct{ GUID, State string }

func to(guid string) doc { return doc{"data": doc{"guid": guid}} }

func (a *app) create(ctx context.Context) error {
	space, err := a.GUID(ctx, "/v3/spaces?names=dev")
	if err != nil {
		return err
	}
	var app made
	if err := a.Call(ctx, http.MethodPost, "/v3/apps", doc{"name": "large", "relationships": doc{"space": to(space)}}, &app); err != nil {
		return err
	}
	a.guid = app.GUID
	var p made
	err = a.Call(ctx, http.MethodPost, "/v3/packages", doc{"type": "bits", "relationships": doc{"app": to(app.GUID)}}, &p)
	a.bits = p.GUID
	return err
}

// phases adds what each phase wrote, and the sum.
func (a *app) phases(ctx context.Context, name string, disk *disk, table *report.Table) error {
	size := float64(a.files)
	first, err := disk.written()
	if err != nil {
		return err
	}
	last, began := first, time.Now()
	row := func(phase string, from, until float64, took time.Duration) {
		table.Add(name, phase, report.Figure(until-from, 0), report.Figure((until-from)/size, 2), report.Figure(took.Seconds(), 1))
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{{"upload", a.upload}, {"stage", a.stage}, {"start", a.start}} {
		start := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		took := time.Since(start)
		now, err := disk.written()
		if err != nil {
			return err
		}
		row(phase.name, last, now, took)
		last = now
	}
	row("all", first, last, time.Since(began))
	return nil
}

// upload sends the files as a zip.
func (a *app) upload(ctx context.Context) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("bits", "app.zip")
	if err != nil {
		return err
	}
	z := zip.NewWriter(part)
	random := rand.NewChaCha8([32]byte{1})
	content := make([]byte, 1<<20)
	for n := range a.files {
		w, err := z.Create(fmt.Sprintf("file-%d.bin", n))
		if err != nil {
			return err
		}
		_, _ = random.Read(content)
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	w, err := z.Create("Staticfile")
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte("root: .\n")); err != nil {
		return err
	}
	if err := errors.Join(z.Close(), form.Close()); err != nil {
		return err
	}
	return a.Send(ctx, http.MethodPost, "/v3/packages/"+a.bits+"/upload", form.FormDataContentType(), body.Bytes())
}

func (a *app) stage(ctx context.Context) error {
	var b made
	if err := a.Call(ctx, http.MethodPost, "/v3/builds", doc{"package": doc{"guid": a.bits}}, &b); err != nil {
		return err
	}
	var build struct {
		State, Error string
		Droplet      made
	}
	err := until(ctx, func() (bool, error) {
		err := a.Call(ctx, http.MethodGet, "/v3/builds/"+b.GUID, nil, &build)
		if err == nil && build.State == "FAILED" {
			err = errors.New(build.Error)
		}
		return build.State == "STAGED", err
	})
	a.built = build.Droplet.GUID
	return err
}

func (a *app) start(ctx context.Context) error {
	if err := a.Call(ctx, http.MethodPatch, "/v3/apps/"+a.guid+"/relationships/current_droplet", to(a.built), nil); err != nil {
		return err
	}
	if err := a.Call(ctx, http.MethodPost, "/v3/apps/"+a.guid+"/actions/start", nil, nil); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		var stats struct{ Resources []made }
		err := a.Call(ctx, http.MethodGet, "/v3/apps/"+a.guid+"/processes/web/stats", nil, &stats)
		return len(stats.Resources) == 1 && stats.Resources[0].State == "RUNNING", err
	})
}

func until(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// disk is an ext4 on a loop device.
type disk struct{ dir, device string }

func newDisk(ctx context.Context) (*disk, func() error, error) {
	dir, err := os.MkdirTemp("", "bench-disk-")
	if err != nil {
		return nil, nil, err
	}
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	for _, args := range [][]string{{"truncate", "-s", "8G", image}, {"mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image}, {"mkdir", mount}, {"mount", "-o", "loop", image, mount}, {"chmod", "711", dir, mount}} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w: %s", args[0], err, out), os.RemoveAll(dir))
		}
	}
	remove := func() error { return errors.Join(unix.Unmount(mount, 0), os.RemoveAll(dir)) }
	device, err := exec.CommandContext(ctx, "findmnt", "-n", "-o", "SOURCE", mount).Output()
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return &disk{mount, filepath.Base(strings.TrimSpace(string(device)))}, remove, nil
}

// written is how many MB were written to the disk, once all of it is.
func (d *disk) written() (float64, error) {
	f, err := os.Open(d.dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/sys/block/" + d.device + "/stat")
	if err != nil {
		return 0, err
	}
	const sectors, sector = 6, 512 // Documentation/block/stat.rst
	fields := strings.Fields(string(text))
	if len(fields) <= sectors {
		return 0, fmt.Errorf("unknown statistics of %s: %s", d.device, text)
	}
	n, err := strconv.ParseFloat(fields[sectors], 64)
	return n * sector / (1 << 20), err
}
