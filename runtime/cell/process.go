package cell

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"cupola/runtime/container"
	"cupola/runtime/logs"
	"cupola/runtime/lrp"
)

// defaultNofile is CF's limit of open files for apps.
const defaultNofile = 16384

// processOf is run as u runs it. Garden starts a process without a directory in
// its user's home.
func (b *build) processOf(u user, run *lrp.Run) container.Process {
	nofile := run.Nofile
	if nofile == 0 {
		nofile = defaultNofile
	}
	return container.Process{
		Args: b.arguments(run), Env: b.environment(u, run), Cwd: u.path(run.Dir),
		UID: u.UID, GID: u.GID, Groups: u.Groups, Nofile: nofile, Nproc: run.Nproc, Core: run.Core,
		Capabilities: run.Capabilities,
	}
}

// path is where a path leads that may be relative to the user's home.
func (u user) path(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(u.Home, name)
}

func (b *build) maxPids() int {
	if b.full.MaxPids > 0 {
		return b.full.MaxPids
	}
	return b.cell.cfg.MaxPids
}

// cpuShares are Diego's for a weight; 0 for no weight.
func cpuShares(weight int) uint64 { return uint64(1024 * max(weight, 0) / 100) }

// stdoutPath and stderrPath are the FIFOs of a step's process.
func (i *instance) stdoutPath(at string) string { return filepath.Join(i.dir, at+".stdout") }
func (i *instance) stderrPath(at string) string { return filepath.Join(i.dir, at+".stderr") }

func (i *instance) makePipes(at string) error {
	for _, name := range []string{i.stdoutPath(at), i.stderrPath(at)} {
		if err := logs.MakeFIFO(name); err != nil {
			return err
		}
	}
	return nil
}

// openPipes opens a process' ends of its FIFOs. The caller closes them.
func (i *instance) openPipes(at string) (stdout, stderr *os.File, err error) {
	stdout, err = logs.OpenWriter(i.stdoutPath(at))
	if err != nil {
		return nil, nil, fmt.Errorf("open output pipe: %w", err)
	}
	stderr, err = logs.OpenWriter(i.stderrPath(at))
	if err != nil {
		stdout.Close()
		return nil, nil, fmt.Errorf("open output pipe: %w", err)
	}
	return stdout, stderr, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
