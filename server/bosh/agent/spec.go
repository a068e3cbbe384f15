package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// Spec is what an instance is made of, whole: nothing of it is looked up when it
// starts, so that an instance starts again as it was.
type Spec struct {
	Deployment string
	Group      string
	Index      int
	AZ         string   `json:",omitempty"`
	Require    []string `json:",omitempty"` // tags of the cells that may run it
	Jobs       []Job
	DataMB     int // the ephemeral disk's size; 0 is DefaultDataMB
	StoreMB    int `json:",omitempty"` // the persistent disk's; 0: there is none
}

// defaultDataMB is the default size of an ephemeral disk.
const defaultDataMB = 1024

// Job is a job of an instance, rendered.
type Job struct {
	Name          string
	Image         string    // "docker://host/name@sha256:<digest>"
	ImageUsername string    `json:",omitempty"`
	ImagePassword string    `json:",omitempty"`
	Packages      []Package `json:",omitempty"` // of uploaded releases
	Files         []lrp.File
	Processes     []Process
	// Condition is the program that has to end well before bin/post-start runs.
	Condition []string `json:",omitempty"`
}

// Package is a compiled package, whose archive is a blob.
type Package struct{ Name, Digest string }

// Process is a process of a job, with all its defaults.
type Process struct {
	bpm.Process
	MemoryMB  int      `json:",omitempty"` // 0: no limit
	CPUs      float64  `json:",omitempty"` // 0: as any other
	Ports     []uint16 `json:",omitempty"`
	Liveness  *Probe   `json:",omitempty"` // a process that fails it is started again
	Readiness *Probe   `json:",omitempty"` // an instance that fails it has no name
	Active    *Probe   `json:",omitempty"` // one instance that passes it has the group's name
	// Monit are the processes of the job's monit file, which this one starts and watches.
	Monit []contract.MonitCheck `json:",omitempty"`
	// Conditions of the monit file of a job for BPM: a process is started again while one holds.
	Conditions []contract.MonitCondition `json:",omitempty"`
}

// Probe reports whether a process is well. One of Exec and Port is given; without
// Path and GRPC the port has to be open.
type Probe struct {
	Exec             []string     `json:",omitempty"`
	Port             uint16       `json:",omitempty"`
	Path             string       `json:",omitempty"` // asked for by HTTP at Port
	TLS              bool         `json:",omitempty"` // by HTTPS
	Host             string       `json:",omitempty"` // the request's
	Headers          []lrp.Header `json:",omitempty"`
	GRPC             bool         `json:",omitempty"` // grpc.health.v1 at Port
	Service          string       `json:",omitempty"` // of GRPC
	TimeoutSeconds   int          `json:",omitempty"` // 0: 1
	PeriodSeconds    int          `json:",omitempty"` // 0: 10
	InitialDelaySecs int          `json:",omitempty"`
	Failures         int          `json:",omitempty"` // in a row; 0: 3
	Successes        int          `json:",omitempty"` // in a row; 0: 1
}

// Encode returns the spec's text and its digest.
func (s Spec) Encode() (text []byte, digest string, err error) {
	text, err = json.Marshal(s)
	if err != nil {
		return nil, "", fmt.Errorf("encode instance %s/%d: %w", s.Group, s.Index, err)
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:8]), nil
}

// Blobs are the digests of the blobs that its containers have mounted, sorted.
func (s Spec) Blobs() (digests []string) {
	for _, j := range s.Jobs {
		for _, p := range j.Packages {
			digests = append(digests, p.Digest)
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}

// Decode reads what Encode wrote.
func Decode(text []byte) (s Spec, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read what an instance is made of: %w", err)
	}
	return s, nil
}

// name is the instance as BOSH writes it.
func (s Spec) name() string { return fmt.Sprintf("%s/%d", s.Group, s.Index) }

// job returns the job of a name, or nil.
func (s Spec) job(name string) *Job {
	i := slices.IndexFunc(s.Jobs, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Jobs[i]
}

// process returns the process of a name, or nil.
func (j *Job) process(name string) *Process {
	i := slices.IndexFunc(j.Processes, func(p Process) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &j.Processes[i]
}

// has reports whether the job has a script.
func (j *Job) has(s Script) bool {
	return slices.ContainsFunc(j.Files, func(f lrp.File) bool { return f.Path == s.file() })
}

// With are the names of the jobs that have a script.
func (s Spec) With(script Script) (jobs []string) {
	for i := range s.Jobs {
		if s.Jobs[i].has(script) {
			jobs = append(jobs, s.Jobs[i].Name)
		}
	}
	return jobs
}

// dataMB is the size of the ephemeral disk.
func (s Spec) dataMB() int { return cmp.Or(s.DataMB, defaultDataMB) }
