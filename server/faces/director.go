package faces

import (
	"cupola/server/boshapi"
	"cupola/server/loops"
)

// newDirector makes the API of BOSH's director. It is served where it has a listener.
func (f *Faces) newDirector(l *loops.Loops) *boshapi.Server {
	x := f.Executor
	ssh := boshapi.SSH{HostKey: f.sshKey}
	if f.ssh != nil {
		ssh.Address, ssh.Sessions = x.SSH, f.ssh.Sessions
	}
	return boshapi.New(boshapi.Config{Store: x.Store, Verify: f.UAA.Verify, Releases: l.Releases, Stats: x.Stats, Logs: x.Logs.Cache,
		ReadVolume: x.Volumes.Read, Temp: x.Dir.Path(), Stemcells: x.StemcellStacks, Slots: f.slots, SSH: ssh, Name: x.Domain, Version: x.Version, Log: x.Log})
}
