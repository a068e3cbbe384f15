package server

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"cupola/runtime/cell"
	"cupola/runtime/contract"
	"cupola/runtime/network"
	"cupola/server/doctor"
)

// Checkup checks the machine for a daemon of this configuration. It needs no
// data directory, and of what it tries nothing stays.
func Checkup(ctx context.Context, c Config) []doctor.Result {
	if err := c.normalize(); err != nil {
		return []doctor.Result{{Name: "flags", Level: doctor.Fail, Detail: err.Error(), Fix: "cupola serve --help"}}
	}
	n := names(c.DataDir)
	return doctor.Check(ctx, doctor.Options{DataDir: c.DataDir, HTTP: c.HTTP, HTTPS: c.HTTPS, Domain: c.Domain,
		Subnet: func() (netip.Prefix, []network.Use, error) { return pickSubnet(c.DataDir) }, LinkPrefix: n.LinkPrefix, IDMap: idMap, Tools: contract.Tools()})
}

// Leaks lists what is in the kernel or on disk and belongs to nothing: of the
// data directory, if it is there, what is of no container of its; of other
// daemons of the machine, what they left when they ended. The daemon of the
// data directory may run.
func Leaks(ctx context.Context, c Config) ([]doctor.Leak, error) {
	if err := c.normalizeForRoot(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.DataDir); errors.Is(err, fs.ErrNotExist) {
		return doctor.Leaks(ctx, names)
	}
	own, err := ownLeaks(ctx, c)
	if err != nil {
		return nil, err
	}
	others, err := doctor.Leaks(ctx, names, c.DataDir)
	return append(own, others...), err
}

// ownLeaks asks the daemon of the data directory, or looks in its place.
func ownLeaks(ctx context.Context, c Config) ([]doctor.Leak, error) {
	d := &daemon{Config: c}
	err := d.openDir(ctx)
	if errors.Is(err, errInUse) {
		var lines []string
		if err := newControl(c.DataDir).get(ctx, "/leaks", &lines); err != nil {
			return nil, err
		}
		return containerLeaks(c, lines), nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	lines, err := d.stillLeaks(ctx)
	return containerLeaks(c, lines), err
}

// containerLeaks makes leaks of the cell's lines.
func containerLeaks(c Config, lines []string) (leaks []doctor.Leak) {
	for _, l := range lines {
		leaks = append(leaks, doctor.Leak{Kind: "container", Name: l, Fix: "sudo cupola serve --data-dir " + c.DataDir + "   # a start clears away what is half made"})
	}
	return leaks
}

// stillLeaks is the cell's Leaks without a network that is made ready for
// containers: an audit leaves nothing behind.
func (d *daemon) stillLeaks(ctx context.Context) ([]string, error) {
	for _, open := range []func(context.Context) error{d.openStore, d.openRoots, d.openContainers} {
		if err := open(ctx); err != nil {
			return nil, err
		}
	}
	audit, err := cell.New(cell.Config{Dir: d.path("cell"), Containers: cell.Engine(d.containers), Network: stillNetwork{ids: d.path("netns", "ids")}, RootFS: d.roots, Files: d.files, Log: d.Log})
	if err != nil {
		return nil, err
	}
	leaks, err := audit.Leaks(ctx)
	return leaks, errors.Join(err, d.unopenContainers())
}

// unopenContainers takes away what containers share, if there are none: the
// audit may have put it there.
func (d *daemon) unopenContainers() error {
	ids, err := d.containerIDs()
	if err != nil || len(ids) > 0 {
		return err
	}
	return d.containers.Teardown()
}

// leaks is what a daemon says of itself.
func (d *daemon) leaks(ctx context.Context) ([]string, error) {
	lines, err := d.cell.Leaks(ctx)
	if err != nil {
		return nil, err
	}
	first, err := d.network.Stray()
	if err != nil || len(first) == 0 {
		return lines, err
	}
	select {
	case <-time.After(straySettle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := d.network.Stray()
	stray := slices.DeleteFunc(first, func(s string) bool { return !slices.Contains(second, s) })
	return append(lines, stray...), err
}

// straySettle is how long a link may stay after its namespace.
const straySettle = 300 * time.Millisecond

// stillNetwork lists containers' namespaces, and does nothing else.
type stillNetwork struct {
	cell.Network
	ids string
}

// List reads the state directory of a network.Network.
func (n stillNetwork) List() ([]string, error) {
	entries, err := os.ReadDir(n.ids)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}
