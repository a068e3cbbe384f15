package model

import (
	"fmt"
	"slices"
	"strings"

	"cupola/server/bbs/bbspb"
)

// maxDepth bounds actions within actions. Cloud Controller's have four levels.
const maxDepth = 64

// optional checks an action that may be missing.
func (f *faults) optional(name string, a *bbspb.Action) {
	if a != nil {
		f.in(name, func(f *faults) { f.action(a, 0) })
	}
}

// required checks an action that may not.
func (f *faults) required(a *bbspb.Action) {
	if a == nil {
		f.say("invalid action type", true)
		return
	}
	f.optional("action", a)
}

func (f *faults) action(a *bbspb.Action, depth int) {
	if depth > maxDepth {
		f.say("actions are nested too deeply", true)
		return
	}
	switch {
	case a.GetDownload() != nil:
		f.download(a.Download)
	case a.GetUpload() != nil:
		f.field("to", a.Upload.To == "")
		f.field("from", a.Upload.From == "")
		f.field("user", a.Upload.User == "")
	case a.GetRun() != nil:
		f.field("path", a.Run.Path == "")
		f.field("user", a.Run.User == "")
	case a.GetTimeout() != nil:
		f.inner(a.Timeout.Action, depth)
		f.field("timeout_ms", a.Timeout.TimeoutMs <= 0)
	case a.GetEmitProgress() != nil:
		f.inner(a.EmitProgress.Action, depth)
	case a.GetTry() != nil:
		f.inner(a.Try.Action, depth)
	case a.GetParallel() != nil:
		f.group(a.Parallel, depth)
	case a.GetSerial() != nil:
		f.group(a.Serial, depth)
	case a.GetCodependent() != nil:
		f.group(a.Codependent, depth)
	default:
		f.field("inner-action", true)
	}
}

// inner checks the action that another has.
func (f *faults) inner(a *bbspb.Action, depth int) {
	if a == nil {
		f.field("action", true)
		return
	}
	f.action(a, depth+1)
}

func (f *faults) group(g *bbspb.Actions, depth int) {
	f.field("actions", len(g.Actions) == 0)
	for i, a := range g.Actions {
		if a == nil {
			f.field(fmt.Sprintf("action at index %d", i), true)
			continue
		}
		f.action(a, depth+1)
	}
}

func (f *faults) download(d *bbspb.Download) {
	f.field("from", d.From == "")
	f.field("to", d.To == "")
	f.field("user", d.User == "")
	f.checksum(d.ChecksumAlgorithm, d.ChecksumValue)
}

func (f *faults) checksum(algorithm, value string) {
	f.field("checksum algorithm", value != "" && algorithm == "")
	f.field("checksum value", value == "" && algorithm != "")
	known := slices.Contains([]string{"md5", "sha1", "sha256"}, strings.ToLower(algorithm))
	f.field("invalid algorithm", value != "" && algorithm != "" && !known)
}

func (f *faults) sidecars(all []*bbspb.Sidecar) {
	for _, s := range all {
		f.required(s.GetAction())
		f.field("memory_mb", s.GetMemoryMb() < 0)
		f.field("disk_mb", s.GetDiskMb() < 0)
	}
}

func (f *faults) checks(c *bbspb.CheckDefinition) {
	for _, check := range slices.Concat(c.Checks, c.ReadinessChecks) {
		port := check.GetTcp().GetPort() + check.GetHttp().GetPort()
		switch {
		case (check.GetTcp() == nil) == (check.GetHttp() == nil):
			f.field("check", true)
		default:
			f.field("port", port < 1 || port > 65535)
		}
	}
}
