package agent

import (
	"path"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// hasPidfiles reports whether the job's scripts find pidfiles of bpm's.
func (j *Job) hasPidfiles() bool { return len(j.Processes) > 0 && !j.monitored() }

// pidfiles is where the job's scripts see pidfiles: a separate directory, since the numbers in it mean nothing to others.
func (i Instance) pidfiles(j *Job) lrp.Volume {
	return lrp.Volume{Name: i.sys(), Path: path.Dir(bpm.PidfileDir(j.Name)), Dir: "run/bpm/" + j.Name, Owner: "root"}
}

// peers are the job's processes, for a script that may send them signals.
func (i Instance) peers(j *Job) (all []lrp.Peer, o contract.ScriptOptions) {
	o.Pidfiles = bpm.PidfileDir(j.Name)
	for _, p := range j.Processes {
		all = append(all, lrp.Peer{Name: p.Name, Key: lrp.Key{ProcessGUID: i.processGUID(j.Name, p.Name)}})
		o.Peers = append(o.Peers, contract.ScriptPeer{Name: p.Name, Executable: p.Executable})
	}
	return all, o
}
