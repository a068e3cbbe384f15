package bpm

import (
	"maps"
	"time"
)

// How bpm starts and stops a process: a pre_start has PreStartLimit; after the
// shutdown signal come SIGQUIT and then SIGKILL.
const (
	PreStartLimit = 30 * time.Second
	QuitAfter     = 15 * time.Second // of the shutdown signal
	KillAfter     = 2 * time.Second  // of SIGQUIT
)

// AddressMark stands for an instance's address in files, arguments and environments,
// which are rendered before it is known.
const AddressMark = "@@SPEC_IP@@"

// JobDir holds the rendered templates of a job.
func JobDir(job string) string { return root + "/jobs/" + job }

// DataDir is on the ephemeral disk.
func DataDir(job string) string { return root + "/data/" + job }

// StoreDir is on the persistent disk.
func StoreDir(job string) string { return root + "/store/" + job }

// PidfileDir is where the pidfiles of a job are.
func PidfileDir(job string) string { return root + "/sys/run/bpm/" + job }

// Pidfile is that of a process.
func Pidfile(job, process string) string { return PidfileDir(job) + "/" + process + ".pid" }

// WithDefaults is p with what bpm gives a process of the job that does not say
// otherwise: working directory, shutdown signal and environment variables.
func (p Process) WithDefaults(job string) Process {
	if p.Workdir == "" {
		p.Workdir = JobDir(job)
	}
	if p.ShutdownSignal == "" {
		p.ShutdownSignal = "TERM"
	}
	env := map[string]string{
		"TMPDIR": DataDir(job) + "/tmp",
		"LANG":   "en_US.UTF-8",
		"PATH":   JobDir(job) + "/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:.",
		"HOME":   DataDir(job),
	}
	maps.Copy(env, p.Env)
	p.Env = env
	return p
}
