// Package agent says what runs for one instance of a BOSH deployment: a
// container for each process of its jobs, and its jobs' scripts, one after the
// other as BOSH's agent runs them. All containers of an instance are a pod: they
// have one network and the same disks. It is pure.
package agent
