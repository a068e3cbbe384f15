package faces

import (
	"cupola/runtime/lrp"
	"cupola/server/bbs"
	"cupola/server/certs"
	"cupola/server/loops"
)

func newBBS(l *loops.Loops) *bbs.Server {
	x := l.Executor
	return bbs.New(bbs.Config{Store: x.Store, Rows: l.Desired, Wake: l.Reconcile.Wake, Log: x.Log,
		Apps: l.Reconcile.Apps,
		Cells: func() (all []lrp.Cell) {
			for _, p := range x.Cells() {
				all = append(all, p.Presence())
			}
			return all
		},
		Containers: func(cellID string) []lrp.ContainerStatus {
			for _, p := range x.Cells() {
				if p.Presence().ID == cellID {
					return p.Containers()
				}
			}
			return nil
		},
		Tasks: l.Reconcile.Tasks, Address: func() string { return x.BBS }})
}

// prepareBBS writes what clients of the BBS need, if it has a listener, before the
// daemon says that it is ready.
func (f *Faces) prepareBBS() error {
	if f.bound.BBS == nil {
		return nil
	}
	x := f.Executor
	f.endpoint = &bbs.Endpoint{DataDir: x.DataDir, Address: x.BBS, APIHost: x.APIHost(), IPs: certs.Addresses(), Own: x.BBSFiles, Log: x.Log}
	return f.endpoint.Prepare()
}
