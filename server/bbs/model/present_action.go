package model

import (
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// presentAction is the reverse of action; nil for the zero value.
func presentAction(a lrp.Action) *bbspb.Action {
	switch {
	case a.Run != nil:
		return &bbspb.Action{Run: presentRun(a.Run)}
	case a.Download != nil:
		d := a.Download
		return &bbspb.Action{Download: &bbspb.Download{Artifact: d.Artifact, From: d.From, To: d.To, CacheKey: d.CacheKey, LogSource: d.LogSource,
			User: d.User, ChecksumAlgorithm: d.Checksum.Algorithm, ChecksumValue: d.Checksum.Value}}
	case a.Upload != nil:
		u := a.Upload
		return &bbspb.Action{Upload: &bbspb.Upload{Artifact: u.Artifact, From: u.From, To: u.To, LogSource: u.LogSource, User: u.User}}
	case a.Timeout != nil:
		t := a.Timeout
		return &bbspb.Action{Timeout: &bbspb.Timeout{Action: presentAction(t.Action), TimeoutMs: t.After.Milliseconds(), LogSource: t.LogSource}}
	case a.EmitProgress != nil:
		e := a.EmitProgress
		return &bbspb.Action{EmitProgress: &bbspb.EmitProgress{Action: presentAction(e.Action), StartMessage: e.Start, SuccessMessage: e.Success,
			FailureMessagePrefix: e.FailurePrefix, LogSource: e.LogSource}}
	case a.Try != nil:
		return &bbspb.Action{Try: &bbspb.Try{Action: presentAction(a.Try.Action), LogSource: a.Try.LogSource}}
	case a.Parallel != nil:
		return &bbspb.Action{Parallel: presentGroup(a.Parallel)}
	case a.Serial != nil:
		return &bbspb.Action{Serial: presentGroup(a.Serial)}
	case a.Codependent != nil:
		return &bbspb.Action{Codependent: presentGroup(a.Codependent)}
	}
	return nil
}

func presentGroup(g *lrp.Group) *bbspb.Actions {
	m := &bbspb.Actions{LogSource: g.LogSource}
	for _, a := range g.Actions {
		m.Actions = append(m.Actions, presentAction(a))
	}
	return m
}

func presentRun(r *lrp.Run) *bbspb.Run {
	m := &bbspb.Run{Path: r.Path, Args: r.Args, Dir: r.Dir, Env: presentEnv(r.Env), User: r.User, LogSource: r.LogSource, SuppressLogOutput: r.Quiet}
	if r.Nofile > 0 || r.Nproc > 0 {
		m.ResourceLimits = &bbspb.ResourceLimits{}
		if r.Nofile > 0 {
			m.ResourceLimits.Nofile = &r.Nofile
		}
		if r.Nproc > 0 {
			m.ResourceLimits.Nproc = &r.Nproc
		}
	}
	return m
}
