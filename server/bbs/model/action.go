package model

import (
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// action is an action of a valid message; the zero value for nil.
func action(a *bbspb.Action) lrp.Action {
	switch {
	case a.GetDownload() != nil:
		d := a.Download
		return lrp.Action{Download: &lrp.Download{Artifact: d.Artifact, To: d.To, User: d.User, LogSource: d.LogSource,
			Source: source(d.From, d.CacheKey, d.ChecksumAlgorithm, d.ChecksumValue)}}
	case a.GetUpload() != nil:
		u := a.Upload
		return lrp.Action{Upload: &lrp.Upload{Artifact: u.Artifact, From: u.From, To: remote(u.To), User: u.User, LogSource: u.LogSource}}
	case a.GetRun() != nil:
		return lrp.Action{Run: run(a.Run)}
	case a.GetTimeout() != nil:
		t := a.Timeout
		return lrp.Action{Timeout: &lrp.Timeout{Action: action(t.Action), After: milliseconds(t.TimeoutMs), LogSource: t.LogSource}}
	case a.GetEmitProgress() != nil:
		e := a.EmitProgress
		return lrp.Action{EmitProgress: &lrp.EmitProgress{Action: action(e.Action), Start: e.StartMessage, Success: e.SuccessMessage,
			FailurePrefix: e.FailureMessagePrefix, LogSource: e.LogSource}}
	case a.GetTry() != nil:
		return lrp.Action{Try: &lrp.Try{Action: action(a.Try.Action), LogSource: a.Try.LogSource}}
	case a.GetParallel() != nil:
		return lrp.Action{Parallel: group(a.Parallel)}
	case a.GetSerial() != nil:
		return lrp.Action{Serial: group(a.Serial)}
	case a.GetCodependent() != nil:
		return lrp.Action{Codependent: group(a.Codependent)}
	}
	return lrp.Action{}
}

func run(r *bbspb.Run) *lrp.Run {
	return &lrp.Run{Path: r.Path, Args: r.Args, Dir: r.Dir, Env: env(r.Env), User: r.User,
		Nofile: r.ResourceLimits.GetNofile(), Nproc: r.ResourceLimits.GetNproc(),
		LogSource: r.LogSource, Quiet: r.SuppressLogOutput, Files: files(r.VolumeMountedFiles)}
}

func group(g *bbspb.Actions) *lrp.Group {
	out := &lrp.Group{LogSource: g.LogSource}
	for _, a := range g.Actions {
		out.Actions = append(out.Actions, action(a))
	}
	return out
}

// source is where something is downloaded from.
func source(from, cacheKey, algorithm, value string) lrp.Source {
	return lrp.Source{From: remote(from), CacheKey: cacheKey, Checksum: lrp.Checksum{Algorithm: strings.ToLower(algorithm), Value: value}}
}

// remote keeps clients from what the cell itself has: blobs are Cloud Foundry's
// apps' and may not be read, or written, by a name that a client chose.
func remote(url string) string {
	if strings.HasPrefix(url, lrp.BlobScheme) || strings.HasPrefix(url, lrp.LayerScheme) {
		return "no:" + url
	}
	return url
}
