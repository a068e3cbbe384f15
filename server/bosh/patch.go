package bosh

import (
	"context"
	"errors"
	"fmt"

	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Patch is what changes the files of a job before anything is read of it:
// quarks.pre_render_scripts.
type Patch struct {
	Release string // the job's
	Scripts []Script
}

// Script is a program for a shell. Name is where it stands.
type Script struct{ Name, Text string }

// patchOf are the scripts of a job: those for what is read of its specification,
// of its processes, and of its other templates. They see one copy of the files,
// one after the other.
func patchOf(j *manifest.Job) Patch {
	p := Patch{Release: j.Release}
	if j.Quarks == nil {
		return p
	}
	pre := j.Quarks.PreRender
	for _, list := range []struct {
		name  string
		texts []string
	}{{"ig_resolver", pre.IGResolver}, {"bpm", pre.BPM}, {"jobs", pre.Jobs}} {
		for n, text := range list.texts {
			p.Scripts = append(p.Scripts, Script{fmt.Sprintf("pre_render_scripts.%s[%d]", list.name, n), text})
		}
	}
	return p
}

func (r *resolution) patched(ctx context.Context, j *job, p Patch) (release.Job, error) {
	if r.Patched == nil {
		return release.Job{}, errors.New("there is no sandbox to run pre_render_scripts in")
	}
	return r.Patched(ctx, j.image, j.Name, p)
}
