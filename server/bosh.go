package server

import (
	"context"
	"net/netip"
	"slices"

	"cupola/rootfs"
	"cupola/runtime/lrp"
	"cupola/server/bosh"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/director"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/sandbox"
	"cupola/server/dns"
	"cupola/server/reconcile"
	"cupola/store"
	"cupola/store/cf"
)

func (h *house) openDirector() {
	h.director = director.New(director.Config{Store: h.store, Volumes: h.volumes, Resolve: h.resolve, AZ: h.cellsOf, Log: h.Log})
}

// cellsOf are the tags of an AZ that is made of logical cells: its name, if a
// cell has that as a tag.
func (h *house) cellsOf(az string) []string {
	for _, p := range h.cell.Parts() {
		if (lrp.Constraint{Require: []string{az}}).Allows(p.Presence().Tags) && az != "" {
			return []string{az}
		}
	}
	return nil
}

// resolve brings the images of a manifest here, and renders their jobs.
func (h *house) resolve(ctx context.Context, r director.Request) (*bosh.Deployment, error) {
	box := sandbox.New(sandbox.Config{Containers: h.containers, Roots: h.roots})
	images := box.NewImages(func(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
		r.Say("Downloading release image", reference)
		return h.pullRelease(ctx, reference, as)
	})
	defer func() {
		if err := images.Close(); err != nil {
			h.Log.WarnContext(ctx, "release images were not unmounted", "err", err)
		}
	}()
	ruby := func(ctx context.Context, program, input []byte) ([]byte, error) {
		r.Say("Rendering templates", "ruby")
		run, err := h.ruby(ctx, box, images)
		if err != nil {
			return nil, err
		}
		return run(ctx, program, input)
	}
	return bosh.Resolver{Job: images.Job, Pinned: images.Pinned, Ruby: ruby, Shared: r.Shared}.Resolve(ctx, r.Manifest)
}

// ruby is what runs Ruby: a release image's, or a stack's.
func (h *house) ruby(ctx context.Context, box *sandbox.Sandbox, images *sandbox.Images) (erb.Ruby, error) {
	from := images.All()
	for _, s := range h.roots.Stacks() {
		from = append(from, string(rootfs.SchemePreloaded)+":"+s.Name)
	}
	run, _, err := box.Ruby(ctx, from...)
	if err == nil && run == nil {
		err = erb.ErrNone
	}
	return run, err
}

func (h *house) pullRelease(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
	img, err := h.pull(ctx, reconcile.ImagePull{Reference: reference, Credential: cf.Credential{Username: as.Username, Password: as.Password}, Say: func(string) {}})
	return img.Reference, err
}

// boshUses are what deployments run on.
func boshUses(tx *store.Tx) (uses []bbsUse, err error) {
	specs, err := store.BOSHSpecs.All(tx)
	if err != nil {
		return nil, err
	}
	seen := map[bbsUse]bool{}
	for _, row := range specs {
		spec, err := agent.Decode(row.Text)
		if err != nil {
			return nil, err
		}
		for _, j := range spec.Jobs {
			if u := (bbsUse{"deployment " + spec.Deployment, j.Image}); !seen[u] {
				seen[u] = true
				uses = append(uses, u)
			}
		}
	}
	return uses, nil
}

// boshNames are the names by which instances of deployments find each other.
type boshNames struct {
	deployments []*cf.BOSHDeployment
	instances   []*cf.BOSHInstance
}

func (b *boshNames) load(tx *store.Tx) (err error) {
	if b.deployments, err = store.BOSHDeployments.All(tx); err != nil || len(b.deployments) == 0 {
		return err
	}
	b.instances, err = store.BOSHInstances.All(tx)
	return err
}

// clusterZone is where Kubernetes has the names of services: rendered there, a
// deployment has the same.
const clusterZone = "svc.cluster.local"

// add adds the instances that run and are ready, each by its own name and by its
// group's.
func (b *boshNames) add(t *dns.Table, actuals []*lrp.Actual) {
	if len(b.deployments) == 0 {
		return
	}
	t.Zones = append(t.Zones, clusterZone)
	for _, d := range b.deployments {
		names := manifest.Names{Deployment: d.Name}
		for _, i := range b.instances {
			if i.DeploymentGUID != d.GUID || i.Lifecycle != string(manifest.Service) {
				continue
			}
			own, group := names.Service(i.Group, i.Index), names.Group(i.Group)
			for _, name := range []string{own, group} {
				if !slices.Contains(t.Zones, name) {
					t.Zones = append(t.Zones, name)
				}
			}
			host, ok := hostOf(d.Name, i, actuals)
			if !ok {
				continue
			}
			for _, name := range []string{own, group} {
				t.Hosts[name] = append(t.Hosts[name], host)
				t.Hosts[name+".default."+clusterZone] = append(t.Hosts[name+".default."+clusterZone], host)
			}
		}
	}
}

// hostOf is the address of an instance of which all processes run and are ready.
func hostOf(deployment string, i *cf.BOSHInstance, actuals []*lrp.Actual) (dns.Host, bool) {
	prefix := agent.Instance{Spec: agent.Spec{Deployment: deployment, Group: i.Group, Index: i.Index}}.Prefix()
	address, ready := "", i.Phase == cf.BOSHRunning || i.Phase == cf.BOSHPostStart || i.Phase == cf.BOSHStarting
	for _, a := range actuals {
		if len(a.ProcessGUID) > len(prefix) && a.ProcessGUID[:len(prefix)] == prefix {
			ready = ready && a.State == lrp.Running && a.Ready && !a.Stopping
			address = a.Address
		}
	}
	addr, err := netip.ParseAddr(address)
	return dns.Host{Address: addr, Index: i.Index}, err == nil && ready
}
