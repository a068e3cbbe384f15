//go:build linux && cgo

package container

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"

	"cupola/runtime/contract"
)

// BenchmarkFirstByte starts the same program in the same root file system by
// turns through an Engine and through runc's command, with the same namespaces,
// mounts, limits and allowed system calls, and compares the medians of the time
// to the first byte of output.
func BenchmarkFirstByte(b *testing.B) {
	e := newBench(b)
	bundle := runcBundle(b, e)
	var ours, theirs []time.Duration
	for n := 0; b.Loop(); n++ {
		ours = append(ours, e.firstByte(b, "ours-"+strconv.Itoa(n)))
		theirs = append(theirs, runcFirstByte(b, bundle, e.cfg.CgroupParent+"-runc-"+strconv.Itoa(n)))
	}
	engine, runc := median(ours), median(theirs)
	b.ReportMetric(ms(engine), "ms/engine")
	b.ReportMetric(ms(runc), "ms/runc")
	b.ReportMetric(ms(engine)/ms(runc), "engine/runc")
}

func (b *bench) firstByte(t testing.TB, id string) time.Duration {
	spec := b.spec(id, "echo", "x")
	spec.Limits = Limits{MemoryBytes: 128 << 20, CPUShares: 256, Pids: 1024}
	begin := time.Now()
	_, r := b.start(t, spec)
	readByte(t, r)
	took := time.Since(begin)
	b.wait(t, id)
	if err := b.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return took
}

func readByte(t testing.TB, r io.Reader) {
	t.Helper()
	var buf [1]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		t.Fatal(err)
	}
}

func runcFirstByte(t testing.TB, bundle, id string) time.Duration {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("runc", "run", "--bundle", bundle, id)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	begin := time.Now()
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	readByte(t, r)
	took := time.Since(begin)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return took
}

// runcBundle writes a config.json with the posture of spec.
func runcBundle(t testing.TB, b *bench) string {
	t.Helper()
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("needs runc to compare with")
	}
	dir := filepath.Dir(b.rootfs)
	caps := &specs.LinuxCapabilities{}
	memory, pids, shares := int64(128<<20), int64(1024), uint64(256)
	ids := []specs.LinuxIDMapping{{HostID: testIDs.Base, Size: testIDs.Size}}
	spec := specs.Spec{
		Version: "1.0.2", Hostname: "bench", Root: &specs.Root{Path: b.rootfs},
		Process: &specs.Process{
			Args: []string{"/bin/probe", "echo", "x"}, Env: []string{"PATH=/bin"}, Cwd: "/",
			User: specs.User{UID: 2000, GID: 2000}, Capabilities: caps, NoNewPrivileges: true,
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=64k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "noexec", "mode=1777", "size=64m"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "nodev", "noexec"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "nodev", "noexec", "ro"}},
			{Destination: contract.ProgramDir, Type: "bind", Source: b.cfg.HelperDir, Options: []string{"bind", "nosuid", "nodev", "ro"}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace}, {Type: specs.MountNamespace}, {Type: specs.PIDNamespace},
				{Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.NetworkNamespace},
			},
			UIDMappings: ids, GIDMappings: ids,
			CgroupsPath: "/" + b.cfg.CgroupParent + "-runc",
			Resources: &specs.LinuxResources{
				Devices: []specs.LinuxDeviceCgroup{{Access: "rwm"}},
				Memory:  &specs.LinuxMemory{Limit: &memory, Swap: &memory},
				CPU:     &specs.LinuxCPU{Shares: &shares}, Pids: &specs.LinuxPids{Limit: &pids},
			},
			MaskedPaths: maskedPaths(), ReadonlyPaths: readonlyPaths(),
			Seccomp: runcSeccomp(t),
		},
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runcSeccomp allows what our filter allows, on this architecture alone.
func runcSeccomp(t testing.TB) *specs.LinuxSeccomp {
	t.Helper()
	var names []string
	for nr := range verdicts() {
		name, err := libseccomp.ScmpSyscall(nr).GetName()
		if err == nil && !strings.HasPrefix(name, "clone") {
			names = append(names, name)
		}
	}
	return &specs.LinuxSeccomp{
		DefaultAction: specs.ActErrno,
		Architectures: []specs.Arch{specs.ArchX86_64},
		Syscalls: []specs.LinuxSyscall{
			{Names: names, Action: specs.ActAllow},
			{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{{Index: 0, Value: 0x7e020000, Op: specs.OpMaskedEqual}}},
		},
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
