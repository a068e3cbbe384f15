package director

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/server/bosh"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// rowWriter makes the rows of instances what a deployment wants.
type rowWriter struct {
	tx         *store.Tx
	deploy     *deploy
	deployment *cf.BOSHDeployment
	rows       map[string][]*cf.BOSHInstance // by group; not in the manifest so far
	names      map[string]string             // of the rows before the deploy, by GUID
	renew      []string                      // GUIDs of the instances to recreate
	newDisks   map[string]string             // GUIDs of the disks that replace those of instances, by their GUIDs
	azs        func(az string) []string
}

func newRowWriter(tx *store.Tx, d *deploy, deployment *cf.BOSHDeployment, rows []*cf.BOSHInstance) *rowWriter {
	w := &rowWriter{tx: tx, deploy: d, deployment: deployment, rows: map[string][]*cf.BOSHInstance{}, names: map[string]string{}, newDisks: map[string]string{}}
	for _, r := range rows {
		w.rows[r.Group] = append(w.rows[r.Group], r)
		w.names[r.GUID] = instanceKey(r.Group, r.Index)
	}
	return w
}

func instanceKey(group string, index int) string { return group + "/" + strconv.Itoa(index) }

// migrate moves the rows of groups that were renamed to their new groups: their disks stay
// with them.
func (w *rowWriter) migrate() error {
	for _, g := range w.deploy.resolved.Groups {
		for _, from := range g.MigratedFrom {
			if w.deploy.m.Group(from.Name) != nil {
				return fmt.Errorf("instance group %s was to become %s, and is there itself still", from.Name, g.Name)
			}
			var others []*cf.BOSHInstance
			for _, r := range w.rows[from.Name] {
				if from.AZ != "" && r.AZ != from.AZ {
					others = append(others, r)
					continue
				}
				r.Group = g.Name
				w.rows[g.Name] = append(w.rows[g.Name], r)
			}
			w.rows[from.Name] = others
		}
	}
	return nil
}

// group makes the rows of a group.
func (w *rowWriter) group(g *bosh.Group) error {
	rows, err := w.place(g)
	if err != nil {
		return err
	}
	for n := range g.Instances {
		if err := w.instance(g, &g.Instances[n], rows[n]); err != nil {
			return fmt.Errorf("instance %s/%d: %w", g.Name, g.Instances[n].Index, err)
		}
	}
	return nil
}

// instance writes the row of an instance; r is nil for a new one.
func (w *rowWriter) instance(g *bosh.Group, i *bosh.Instance, r *cf.BOSHInstance) error {
	spec, err := specOf(w.deployment.Name, g, i)
	if err != nil {
		return err
	}
	if w.azs != nil {
		spec.Require = w.azs(i.AZ)
	}
	text, digest, err := spec.Encode()
	if err != nil {
		return err
	}
	isNew := r == nil
	if isNew {
		r = &cf.BOSHInstance{DeploymentGUID: w.deployment.GUID, Group: g.Name, Index: i.Index, Phase: cf.BOSHStopped, Since: w.tx.Now}
	}
	r.AZ, r.Lifecycle, r.Next = i.AZ, string(g.Lifecycle), digest
	if w.deploy.order.RecreateDisks && r.DiskGUID != "" && g.PersistentDiskMB > 0 {
		w.newDisks[r.GUID] = guid.New()
	}
	if err := w.disk(r, g); err != nil {
		return err
	}
	if r.Goal != cf.BOSHHalted { // what was stopped stays so until it is started
		r.Goal = cf.BOSHStarted
	}
	if isNew {
		err = store.BOSHInstances.Insert(w.tx, r)
	} else {
		if slices.Contains(w.renew, r.GUID) {
			r.Renew++
		}
		err = store.BOSHInstances.Update(w.tx, r)
	}
	if err != nil {
		return err
	}
	err = store.BOSHSpecs.Insert(w.tx, &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: r.GUID, Text: text, Blobs: spec.Blobs(), Releases: releasesOf(g)})
	if store.IsTaken(err) {
		return nil
	}
	return err
}

// releasesOf names the uploaded releases of a group's jobs.
func releasesOf(g *bosh.Group) (names []string) {
	for _, j := range g.Jobs {
		if j.Image.Archive != (manifest.Archive{}) {
			names = append(names, j.Release+"/"+j.Version)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// disk gives an instance its persistent disk: the one that it has, the orphan of its name
// that is not too large, or a new one.
func (w *rowWriter) disk(r *cf.BOSHInstance, g *bosh.Group) error {
	if r.DiskGUID != "" {
		return w.keepDisk(r, g)
	}
	if g.PersistentDiskMB == 0 {
		return nil
	}
	d, err := w.orphanFor(r, g)
	if err != nil {
		return err
	}
	action, put := "attach", store.BOSHDisks.Update
	if d == nil {
		d, action, put = &cf.BOSHDisk{DeploymentName: w.deployment.Name, SizeMB: g.PersistentDiskMB}, "create", store.BOSHDisks.Insert
	}
	d.Group, d.Index, d.AZ, d.OrphanedAt = r.Group, r.Index, r.AZ, time.Time{}
	if err := put(w.tx, d); err != nil {
		return err
	}
	r.DiskGUID = d.GUID
	return recordDisk(w.tx, w.deploy.task, action, d, nil)
}

// orphanFor returns the orphaned disk that an instance attaches, nil for none: of several
// with its name one of its AZ, and of those the one that was orphaned last.
func (w *rowWriter) orphanFor(r *cf.BOSHInstance, g *bosh.Group) (found *cf.BOSHDisk, err error) {
	all, err := store.BOSHDisks.By(w.tx, "deployment_names", w.deployment.Name)
	for _, d := range all {
		if d.OrphanedAt.IsZero() || d.Group != r.Group || d.Index != r.Index || d.SizeMB > g.PersistentDiskMB {
			continue
		}
		if here := d.AZ == r.AZ; found == nil || here && found.AZ != r.AZ || here == (found.AZ == r.AZ) && d.OrphanedAt.After(found.OrphanedAt) {
			found = d
		}
	}
	return found, err
}

// keepDisk gives the disk of an instance the name that this has now. It refuses to make
// the disk smaller; a larger one the instance gets when it starts. One that is wanted no
// longer is the instance's until that comes up without it.
func (w *rowWriter) keepDisk(r *cf.BOSHInstance, g *bosh.Group) error {
	d, err := store.BOSHDisks.Get(w.tx, r.DiskGUID)
	if err == nil && g.PersistentDiskMB > 0 && g.PersistentDiskMB < d.SizeMB {
		err = fmt.Errorf("/instance_groups/name=%s/persistent_disk: the disk has %d MB and cannot become smaller, %d MB: keep the size, or delete the instance and its disk first", g.Name, d.SizeMB, g.PersistentDiskMB)
	}
	if err != nil {
		return err
	}
	return w.nameDisk(r, d)
}

// nameDisk names a disk like its instance: an orphan is found by that.
func (w *rowWriter) nameDisk(r *cf.BOSHInstance, d *cf.BOSHDisk) error {
	if d.Group == r.Group && d.Index == r.Index && d.AZ == r.AZ {
		return nil
	}
	d.Group, d.Index, d.AZ = r.Group, r.Index, r.AZ
	return store.BOSHDisks.Update(w.tx, d)
}

// deleteUnwanted marks instances that are not in the manifest for deletion.
func (w *rowWriter) deleteUnwanted() error {
	for _, rows := range w.rows {
		for _, r := range rows {
			r.Goal = cf.BOSHGone
			if err := store.BOSHInstances.Update(w.tx, r); err != nil {
				return err
			}
			if r.DiskGUID == "" {
				continue
			}
			d, err := store.BOSHDisks.Get(w.tx, r.DiskGUID)
			if err == nil {
				err = w.nameDisk(r, d)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// specOf is what an instance is made of.
func specOf(deployment string, g *bosh.Group, i *bosh.Instance) (agent.Spec, error) {
	s := agent.Spec{Deployment: deployment, Group: g.Name, Index: i.Index, AZ: i.AZ, DataMB: g.EphemeralDiskMB, StoreMB: g.PersistentDiskMB}
	for n := range g.Jobs {
		j, rendered := &g.Jobs[n], &i.Jobs[n]
		job := agent.Job{Name: j.Name, Image: j.Pinned, ImageUsername: j.Image.Credentials.Username, ImagePassword: j.Image.Credentials.Password, Condition: j.PostStart}
		for _, p := range j.Packages {
			job.Packages = append(job.Packages, agent.Package(p))
		}
		for _, f := range rendered.Files {
			job.Files = append(job.Files, lrp.File{Path: f.Path, Content: f.Content, Program: f.Mode&0o111 != 0})
		}
		if err := lrp.CheckFiles(job.Files); err != nil {
			return s, fmt.Errorf("job %s: %w", j.Name, err)
		}
		for _, p := range rendered.Processes {
			process, err := processOf(j, p)
			if err != nil {
				return s, fmt.Errorf("job %s, process %s: %w", j.Name, p.Name, err)
			}
			job.Processes = append(job.Processes, process)
		}
		s.Jobs = append(s.Jobs, job)
	}
	return s, nil
}

func processOf(j *bosh.Job, p bosh.Process) (agent.Process, error) {
	if p.Unsafe.Privileged || p.Unsafe.HostPIDNamespace {
		return agent.Process{}, fmt.Errorf("it wants to be privileged, and nothing is here: take unsafe.privileged and unsafe.host_pid_namespace out, or render the deployment for Kubernetes")
	}
	of := agent.Process{Process: p.Process, Monit: p.Monit, Conditions: p.Conditions, MemoryMB: int(p.Limits.Memory >> 20), CPUs: p.CPUs}
	for _, port := range j.Ports {
		of.Ports = append(of.Ports, uint16(port.Internal))
	}
	var err error
	if of.Liveness, err = probeOf(p.Liveness, j.Ports); err != nil {
		return of, fmt.Errorf("liveness: %w", err)
	}
	if of.Readiness, err = probeOf(p.Readiness, j.Ports); err != nil {
		return of, fmt.Errorf("readiness: %w", err)
	}
	if of.Active, err = probeOf(j.Active(&p), j.Ports); err != nil {
		return of, fmt.Errorf("activePassiveProbes: %w", err)
	}
	return of, nil
}

// probeOf is a probe as the cell does it. An exec of one word with spaces in it
// is a command of the shell's.
func probeOf(p *manifest.Probe, ports []manifest.Port) (*agent.Probe, error) {
	if p == nil {
		return nil, nil
	}
	of := &agent.Probe{Exec: p.Exec, TimeoutSeconds: p.TimeoutSeconds, PeriodSeconds: p.PeriodSeconds, InitialDelaySecs: p.InitialDelaySeconds,
		Failures: p.FailureThreshold, Successes: p.SuccessThreshold}
	if len(p.Exec) == 1 && strings.ContainsAny(p.Exec[0], " \t") {
		of.Exec = []string{"/bin/sh", "-c", p.Exec[0]}
	}
	var err error
	switch {
	case len(p.Exec) > 0:
	case p.HTTPGet != nil:
		of.Path = "/" + strings.TrimPrefix(p.HTTPGet.Path, "/")
		of.TLS, of.Host = strings.EqualFold(p.HTTPGet.Scheme, "HTTPS"), p.HTTPGet.Host
		for _, h := range p.HTTPGet.Headers {
			of.Headers = append(of.Headers, lrp.Header{Name: fmt.Sprint(h["name"]), Value: fmt.Sprint(h["value"])})
		}
		of.Port, err = portOf(p.HTTPGet.Port, ports)
	case p.TCPPort != "":
		of.Port, err = portOf(p.TCPPort, ports)
	case p.GRPCPort != 0:
		of.GRPC, of.Service, of.Port = true, p.GRPCName, uint16(p.GRPCPort)
	default:
		err = fmt.Errorf("the probe does nothing; give one of exec, httpGet, tcpSocket and grpc")
	}
	return of, err
}

func portOf(text string, ports []manifest.Port) (uint16, error) {
	for _, p := range ports {
		if p.Name == text {
			return uint16(p.Internal), nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the job has no port %q", text)
	}
	return uint16(n), nil
}
