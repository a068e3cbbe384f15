package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cupola/rootfs"
	"cupola/runtime/pattern"
)

// storeFacts are the properties of a store of root file systems.
type storeFacts struct {
	quota, quotaWhy string
	stack, stackWhy string
}

// store opens a temporary store of root file systems next to the data directory,
// and returns its properties.
func (m *machine) store() (f storeFacts, err error) {
	err = m.try(func(dir string) error {
		s, err := rootfs.New(rootfs.Config{Dir: filepath.Join(dir, "rootfs"), IDs: m.IDMap, Tools: m.Tools, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		f.quota, f.quotaWhy = s.Quota()
		f.stack, f.stackWhy = s.Stacks.Default("")
		return s.Close()
	})
	return f, err
}

const newDir = "sudo cupola serve --data-dir DIR   # on a local disk"

func (m *machine) quota(context.Context) Result {
	f, err := m.facts()
	if err != nil {
		return failed(err, newDir)
	}
	return m.judgeQuota(f.quota, f.quotaWhy)
}

func (m *machine) judgeQuota(method, why string) Result {
	switch {
	case !strings.HasPrefix(method, "plain"):
		return fine("enforced by " + method)
	case strings.Contains(why, "mkfs"):
		return warning("apps can fill the disk: "+why, m.install("e2fsprogs"))
	case m.container() != "":
		return warning("apps can fill the disk: "+why, loopsIn(m.container()))
	}
	return warning("apps can fill the disk: "+why, "sudo modprobe loop")
}

// hostStack checks whether apps can run on this machine's programs, and which of
// the programs for buildpacks are installed.
func (m *machine) hostStack(ctx context.Context) Result {
	f, err := m.facts()
	if err != nil {
		return failed(err, newDir)
	}
	if f.stack != "host" {
		return warning(f.stackWhy+"; apps run on minifs, for static binaries and simple commands only", "sudo cupola stack build debian12")
	}
	return fine(toolText(toolVersions(ctx, m.root)))
}

// toolchain is a program that buildpacks use, and how to get its version.
type toolchain struct {
	name string
	args []string
	dirs []string // besides the usual ones
}

func toolchains() []toolchain {
	return []toolchain{
		{name: "bash", args: []string{"--version"}},
		{name: "python3", args: []string{"--version"}},
		{name: "node", args: []string{"--version"}},
		{name: "ruby", args: []string{"--version"}},
		{name: "java", args: []string{"-version"}},
		{name: "go", args: []string{"version"}, dirs: []string{"usr/local/go/bin", "usr/lib/go/bin"}},
	}
}

const toolTime = 2 * time.Second

// toolVersions returns the version of each program, or "" if it is missing.
func toolVersions(ctx context.Context, root string) []string {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	list := toolchains()
	versions := make([]string, len(list))
	var wg sync.WaitGroup
	for i, t := range list {
		wg.Go(func() { versions[i] = t.version(ctx, root) })
	}
	wg.Wait()
	return versions
}

var versionNumber = pattern.Lazy(`\d+(\.\d+)+`)

func (t toolchain) version(ctx context.Context, root string) string {
	silent, _ := silentSoftware() // an error hides only what does not answer
	for _, dir := range append([]string{"usr/local/bin", "usr/bin", "bin"}, t.dirs...) {
		program := filepath.Join(root, dir, t.name)
		if isBelow(program, silent) {
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		out, err := exec.CommandContext(ctx, program, t.args...).CombinedOutput()
		if err != nil {
			continue
		}
		if v := versionNumber().FindString(string(out)); v != "" {
			return v
		}
	}
	return ""
}

// toolText lists installed programs with versions, then missing ones.
func toolText(versions []string) string {
	var have, lack []string
	for i, t := range toolchains() {
		if versions[i] == "" {
			lack = append(lack, t.name)
		} else {
			have = append(have, fmt.Sprintf("%s %s", t.name, versions[i]))
		}
	}
	text := strings.Join(have, ", ")
	if len(lack) > 0 {
		text += "; no " + strings.Join(lack, ", ")
	}
	return text
}
