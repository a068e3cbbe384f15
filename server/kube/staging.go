package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// Stager is how the pod of a staging reaches the daemon. The plan and its archives are not in the pod: its stager
// downloads them, so that no credentials lie where buildpacks could read them.
type Stager struct{ URL, Token, CA string }

// searchPath is that of processes of other cells, of users other than root.
const searchPath = "/usr/local/bin:/usr/bin:/bin"

// Stages reports whether a container stages an app.
func Stages(c lrp.Container) bool { return c.Domain == lrp.DomainStaging && c.ResultFile != "" }

// staging is c with the stager for its process.
func (s Stager) staging(c lrp.Container) lrp.Container {
	c.Env = nil // it is the plan's
	c.Action = lrp.Run{Path: contract.Fetch, Args: []string{contract.CommandStage}, User: contract.VcapName, Env: []lrp.EnvVar{
		{Name: contract.EnvStagerURL, Value: s.URL}, {Name: contract.EnvStagerToken, Value: s.Token}, {Name: contract.EnvStagerCA, Value: s.CA}}}.Action()
	return c
}

// inputsOf are the sources of all downloads of a staging.
func inputsOf(c lrp.Container) (all []string) {
	if !Stages(c) {
		return nil
	}
	var add func(lrp.Action)
	add = func(a lrp.Action) {
		if a.Download != nil && !slices.Contains(all, a.Download.From) {
			all = append(all, a.Download.From)
		}
		for _, inner := range a.Inner() {
			add(inner)
		}
	}
	add(c.Action)
	return all
}

// PlanOf is what the stager of a container does.
func PlanOf(c lrp.Container) (p contract.StagingPlan, err error) {
	p = contract.StagingPlan{Env: envOf(c.Env), Source: c.Log.Source, Result: c.ResultFile}
	p.Steps, err = stepOf(c.Action)
	return p, err
}

func envOf(env []lrp.EnvVar) (all []contract.Variable) {
	for _, v := range env {
		all = append(all, contract.Variable(v))
	}
	return all
}

// errStep is of an action that no staging has.
var errStep = errors.New("a Kubernetes cell runs stagings of Cloud Foundry alone")

// stepOf is an action as the stager does it.
func stepOf(a lrp.Action) (s contract.StagingStep, err error) {
	switch {
	case a.Run != nil:
		s.Run = &contract.StagingRun{Path: a.Run.Path, Args: a.Run.Args, Dir: a.Run.Dir, Env: envOf(a.Run.Env)}
	case a.Download != nil:
		s.Download, err = downloadOf(*a.Download)
	case a.Upload != nil:
		name, ok := strings.CutPrefix(a.Upload.To, lrp.BlobScheme)
		if !ok {
			return s, errStep
		}
		s.Upload = &contract.StagingUpload{Artifact: a.Upload.Artifact, From: a.Upload.From, Output: name}
	case a.Timeout != nil:
		s.Timeout = &contract.StagingTimeout{After: a.Timeout.After}
		s.Timeout.Step, err = stepOf(a.Timeout.Action)
	case a.EmitProgress != nil:
		s.Progress = &contract.StagingProgress{Start: a.EmitProgress.Start, Success: a.EmitProgress.Success, FailurePrefix: a.EmitProgress.FailurePrefix}
		s.Progress.Step, err = stepOf(a.EmitProgress.Action)
	case a.Try != nil:
		s.Try = &contract.StagingStep{}
		*s.Try, err = stepOf(a.Try.Action)
	case a.Parallel != nil:
		s.Parallel, err = stepsOf(a.Parallel.Actions)
	case a.Serial != nil:
		s.Serial, err = stepsOf(a.Serial.Actions)
	default:
		return s, errStep
	}
	return s, err
}

func stepsOf(actions []lrp.Action) (all []contract.StagingStep, err error) {
	for _, a := range actions {
		s, err := stepOf(a)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func downloadOf(d lrp.Download) (*contract.StagingDownload, error) {
	_, image := strings.CutPrefix(d.From, lrp.LayerScheme)
	if !image && !strings.HasPrefix(d.From, lrp.BlobScheme) {
		return nil, fmt.Errorf("%w: not a download from %s", errStep, d.From)
	}
	return &contract.StagingDownload{Input: d.From, Image: image, Artifact: d.Artifact, To: d.To}, nil
}

// report is what the stager says of its end.
func (e InstanceEnd) report() (r contract.StagingReport, ok bool) {
	return r, e.Said != "" && json.Unmarshal([]byte(e.Said), &r) == nil
}

// Reported reports whether the log of a staging says how it ended.
func (e InstanceEnd) Reported() bool {
	_, ok := e.report()
	return e.Message == "" && (ok || e.Code == 0)
}

// StagingReason is Reason of a container that stages, and whether it never began, so that it can be done again.
func (e InstanceEnd) StagingReason() (reason string, lost bool) {
	r, ok := e.report()
	reason = strings.Join(r.Reasons, "; ")
	switch {
	case e.Message != "" || !ok || e.Code == 0:
		return e.Reason(FailedProbe{}, false), false
	case r.Lost:
		return "", true
	case reason == "":
		return e.Reason(FailedProbe{}, false), false
	case e.OOM:
		reason += outOfMemory
	}
	return reason, false
}

// outOfMemory is what Diego adds to the end of a container that had no memory left.
const outOfMemory = " (out of memory)"
