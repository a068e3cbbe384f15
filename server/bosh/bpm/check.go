package bpm

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// root is where BOSH keeps all it has.
const root = "/var/vcap"

// Check returns all faults of a job's processes, with bpm's messages where bpm
// has one.
func (c Config) Check(job string) error {
	var faults []error
	seen := map[string]bool{}
	for i, p := range c.Processes {
		what := fmt.Sprintf("process %q", p.Name)
		if p.Name == "" {
			what = fmt.Sprintf("process %d", i+1)
		}
		for _, err := range p.faults(job) {
			faults = append(faults, fmt.Errorf("%s: %w", what, err))
		}
		if seen[p.Name] {
			faults = append(faults, fmt.Errorf("%s is there twice", what))
		}
		seen[p.Name] = p.Name != ""
	}
	return errors.Join(faults...)
}

// A name is part of the names of containers, files and addresses.
var nameRule = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

func (p Process) faults(job string) []error {
	var all []error
	say := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	say(p.Name == "", "invalid config: name")
	say(p.Name != "" && !nameRule().MatchString(p.Name), "invalid config: name may have letters, digits, _, . and -")
	say(p.Executable == "", "invalid config: executable")
	say(!slices.Contains([]string{"", "TERM", "INT"}, p.ShutdownSignal),
		"shutdown signal should either be 'TERM' or 'INT' (or left unspecified), but got '%s'", p.ShutdownSignal)
	for _, text := range slices.Concat([]string{p.Executable, p.Workdir, p.Hooks.PreStart}, p.Args) {
		say(strings.ContainsRune(text, 0), "invalid config: %q has a zero byte", text)
	}
	for name, value := range p.Env {
		say(name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0), "invalid config: env %q", name)
	}
	for _, name := range p.Capabilities {
		say(!slices.Contains(capabilities, name), "invalid config: unknown capability %q", name)
	}
	for _, v := range p.AdditionalVolumes {
		all = append(all, v.faults(job)...)
	}
	for _, v := range p.Unsafe.UnrestrictedVolumes {
		say(!path.IsAbs(v.Path) || path.Clean(v.Path) != v.Path || strings.ContainsRune(v.Path, 0),
			"volume path must be canonical, expected %s but got %s", path.Clean("/"+v.Path), v.Path)
	}
	return all
}

func (v Volume) faults(job string) []error {
	clean := path.Clean(v.Path)
	switch {
	case clean != v.Path:
		return []error{fmt.Errorf("volume path must be canonical, expected %s but got %s", clean, v.Path)}
	case slices.Contains([]string{DataDir(job), StoreDir(job)}, clean):
		return []error{fmt.Errorf("invalid volume path: %s cannot conflict with default job data or store directories", v.Path)}
	case !strings.HasPrefix(clean, root+"/") || strings.ContainsRune(clean, 0):
		return []error{fmt.Errorf("invalid volume path: %s must be within %s", v.Path, root)}
	}
	return nil
}

// capabilities are those of Linux.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)
