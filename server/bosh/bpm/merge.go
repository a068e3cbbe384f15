package bpm

import (
	"cmp"
	"maps"
	"slices"
)

// Merge lays the processes of over, which a deployment manifest has at
// quarks.bpm, on those that the job's release has rendered: of two with the same
// name all that over says wins, and what it does not say stays. Environment
// variables are laid over one by one, lists as a whole. A process that only over
// has comes last.
func (c Config) Merge(over Config) Config {
	merged := Config{Processes: slices.Clone(c.Processes), Unknown: slices.Concat(c.Unknown, over.Unknown)}
	for _, p := range over.Processes {
		at := slices.IndexFunc(merged.Processes, func(q Process) bool { return q.Name == p.Name })
		if at < 0 {
			merged.Processes = append(merged.Processes, p)
			continue
		}
		merged.Processes[at] = merged.Processes[at].under(p)
	}
	return merged
}

func (p Process) under(over Process) Process {
	return Process{
		Name:              p.Name,
		Executable:        cmp.Or(over.Executable, p.Executable),
		Args:              list(over.Args, p.Args),
		Env:               both(p.Env, over.Env),
		Workdir:           cmp.Or(over.Workdir, p.Workdir),
		Hooks:             cmp.Or(over.Hooks, p.Hooks),
		Capabilities:      list(over.Capabilities, p.Capabilities),
		Limits:            p.Limits.under(over.Limits),
		EphemeralDisk:     over.EphemeralDisk || p.EphemeralDisk,
		PersistentDisk:    over.PersistentDisk || p.PersistentDisk,
		AdditionalVolumes: list(over.AdditionalVolumes, p.AdditionalVolumes),
		Unsafe: Unsafe{
			Privileged:          over.Unsafe.Privileged || p.Unsafe.Privileged,
			UnrestrictedVolumes: list(over.Unsafe.UnrestrictedVolumes, p.Unsafe.UnrestrictedVolumes),
			HostPIDNamespace:    over.Unsafe.HostPIDNamespace || p.Unsafe.HostPIDNamespace,
		},
		ShutdownSignal: cmp.Or(over.ShutdownSignal, p.ShutdownSignal),
		Requests:       both(p.Requests, over.Requests),
	}
}

func (l Limits) under(over Limits) Limits {
	return Limits{
		Memory:       cmp.Or(over.Memory, l.Memory),
		OpenFiles:    cmp.Or(over.OpenFiles, l.OpenFiles),
		Processes:    cmp.Or(over.Processes, l.Processes),
		CoreFileSize: cmp.Or(over.CoreFileSize, l.CoreFileSize),
	}
}

func list[T any](over, under []T) []T {
	if len(over) > 0 {
		return over
	}
	return under
}

func both(under, over map[string]string) map[string]string {
	if len(over) == 0 {
		return under
	}
	all := maps.Clone(over)
	for k, v := range under {
		if _, ok := all[k]; !ok {
			all[k] = v
		}
	}
	return all
}
