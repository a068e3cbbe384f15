// Package loops opens and runs the control loops, which move the actual to the desired
// state: of instances, deployments, service brokers, routes and reach.
package loops

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bosh"
	"cupola/server/bosh/compile"
	"cupola/server/bosh/director"
	"cupola/server/bosh/releases"
	"cupola/server/bosh/resolve"
	"cupola/server/bosh/tarball"
	"cupola/server/broker"
	"cupola/server/control/apps"
	"cupola/server/control/quota"
	"cupola/server/databackup"
	"cupola/server/databroker"
	"cupola/server/deploy"
	"cupola/server/executor"
	"cupola/server/front"
	"cupola/server/ingress"
	"cupola/server/outbound"
	"cupola/server/reach"
	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/scalingbroker"
	"cupola/server/sleep"
	"cupola/store/cf"
)

// Loops are the loops of a daemon.
type Loops struct {
	Executor *executor.Executor // is given, and open

	Reconcile  *reconcile.Loop
	Director   *director.Loop
	Releases   releases.Library // of BOSH
	Deploys    *deploy.Loop
	Brokers    *broker.Loop
	Calls      *outbound.Caller
	DataBroker *databroker.Service // the built-in service broker; nil where it is off
	Scaling    *scalingbroker.Service
	Backups    *databackup.Loop // of its instances
	Ingress    *ingress.Ingress
	Reach      *reach.Reach
	Sleep      *sleep.Loop
	Desired    *bbsrows.Cache // what clients of the BBS desire
}

// dialTime is how long a server of releases may take to answer a connection.
const dialTime = 30 * time.Second

// errNoDeployments is of a deployment where it cannot run.
var errNoDeployments = fmt.Errorf("BOSH deployments run on this machine alone, and their templates are rendered in containers: %w", executor.ErrNone)

// Open opens all but the built-in service broker. ctx ends what waits for requests
// in flight; observe receives what each pass of the control loop saw.
func (l *Loops) Open(ctx context.Context, r *router.Router, pull reconcile.Pull, observe func(reconcile.Look)) (err error) {
	x := l.Executor
	l.Releases = releases.Library{Blobs: x.Blobs, Fetch: tarball.Fetcher{Client: &http.Client{Transport: x.Egress().Transport(dialTime)}, Blobs: x.Blobs}.Fetch}
	resolver := &resolve.Resolver{Containers: x.Containers, Roots: x.Roots, Users: x.Users, States: x.Dir.Path("cell"), Images: x.Images, Log: x.Log,
		Store: x.Store, Blobs: x.Blobs, Fetch: l.Releases.Fetch, StackFor: x.StemcellStacks}
	resolver.Compiler = compile.New(compile.Config{Store: x.Store, Blobs: x.Blobs, Logs: x.Dir.Path("packaging"), Run: resolver.Sandbox().Compile, Log: x.Log})
	deployments := director.Config{Store: x.Store, Volumes: x.Volumes, Resolve: resolver.Resolve, Export: resolver.Export, AZ: l.cellsOf, Log: x.Log}
	if x.None {
		deployments.Resolve = func(context.Context, director.Request) (*bosh.Deployment, error) { return nil, errNoDeployments }
		deployments.Export = func(context.Context, director.ExportRequest) (*director.Exported, error) {
			return nil, errNoDeployments
		}
	}
	l.Deploys = deploy.New(deploy.Config{Store: x.Store, Within: quota.WithinProcesses(x.QuotaAwakeOnly), Log: x.Log})
	l.Desired = bbsrows.New()
	l.Reach = reach.New(reach.Config{Store: x.Store, Cell: x, Log: x.Log})
	_, ports, err := front.ParseTCP(x.TCP)
	if err != nil {
		return err
	}
	l.Ingress = ingress.New(ingress.Config{Store: x.Store, Router: r, Names: x.Names, Certify: x.Cell.SetInternalNames, BBS: l.Desired, Domain: x.Domain, Ports: ports, Log: x.Log})
	deployments.Routed = l.Ingress.Current
	l.Director = director.New(deployments)
	sources := []reconcile.Source{l.Director.Source()}
	if len(x.DataServices) > 0 {
		sources = append([]reconcile.Source{{Desired: databroker.AllDesired}}, sources...)
	}
	l.Reconcile = reconcile.New(reconcile.Config{Store: x.Store, Cells: l.cells(ctx), API: x.APIURL(), Pull: pull, BBS: l.Desired, Sources: sources, Release: apps.Release, StackVersion: l.stackVersion(), Whole: x.Images.Whole,
		Observe: observe, Logs: x.Logs.Line, Log: x.Log})
	l.Sleep = sleep.New(sleep.Config{Store: x.Store, Router: r, Defaults: cf.SleepTimes{After: x.SleepAfter, StopAfter: x.SleepStopAfter},
		Freeze: x.Freeze, Thaw: x.Cell.Thaw, Containers: x.AllContainers, Routed: l.Ingress.Current, Logs: x.Logs.Line, Log: x.Log})
	r.SetWake(l.Sleep.Wake)
	return l.openOutbound(x)
}

// RenderBOSH writes a deployment as Kubernetes objects; see resolve.Kube.
func (l *Loops) RenderBOSH(ctx context.Context, decode func(request any) error) (any, error) {
	return resolve.Kube(ctx, l.Director, decode)
}

// stackVersion names what stagings on a stack depend on besides their rows, "" where that
// is unknown; nil if all pushes are staged.
func (l *Loops) stackVersion() func(stack string) string {
	x := l.Executor
	if x.StageUnchanged {
		return nil
	}
	return func(name string) string {
		version := x.Version // of the programs that stage
		if st, ok := x.Roots.Stacks.Get(name); ok {
			files := st.Version()
			if files == "" {
				return ""
			}
			version += " " + files
		}
		return version
	}
}

// OpenDataServices opens the built-in service broker, if it is enabled, the loop that backs up
// its instances, and the broker of the autoscaler.
func (l *Loops) OpenDataServices(ctx context.Context) (err error) {
	x := l.Executor
	if len(x.DataServices) > 0 {
		l.DataBroker, err = databroker.Open(ctx, databroker.Config{Store: x.Store, Services: x.DataServices, Pull: l.pullImage, Volumes: x.Volumes,
			Attach: x.Cell.Attach, Containers: x.Cell.Containers, Trust: x.Identities.Certificate, Content: x.Dir.ServiceContents(), HasFile: x.Stacks.HasServiceFile, Temp: l.unnamedFile,
			Connections: x.Cell.Connections, Gauge: x.Logs.Gauge, Dashboard: x.ServiceDashboard, Log: x.Log})
		x.Logs.Scrub = l.DataBroker.Scrub
		offer := x.Stacks.Offered
		x.Stacks.Offered = func() { offer(); l.DataBroker.Refresh(context.WithoutCancel(ctx)) }
	}
	if err != nil {
		return err
	}
	l.Backups = databackup.New(databackup.Config{Store: x.Store, Blobs: x.Blobs, Data: l.DataBroker, Dir: x.Dir.Path(), Keep: func() int { return x.Current.Get().ServiceBackups }, Log: x.Log})
	l.Scaling, err = scalingbroker.Open(ctx, scalingbroker.Config{Store: x.Store, URL: x.AutoscalerURL(), Log: x.Log})
	return err
}

// pullImage pulls the image of an operator's service file.
func (l *Loops) pullImage(ctx context.Context, reference string, as cf.Credential) (databroker.Image, error) {
	got, err := l.Executor.Images.Pull(ctx, reconcile.ImagePull{Reference: reference, Credential: as, Say: func(string) {}})
	m := got.Metadata
	return databroker.Image{Reference: got.Reference, User: m.User, Directory: m.Workdir, Entrypoint: m.Entrypoint, Cmd: m.Cmd, Env: got.Env}, err
}

// unnamedFile makes a file that is gone once it is closed.
func (l *Loops) unnamedFile() (*os.File, error) {
	t, err := l.Executor.Blobs.Temp()
	if err != nil {
		return nil, err
	}
	return t.File, os.Remove(t.Name())
}

// cells are all cells, which drain what they stop until ctx ends.
func (l *Loops) cells(ctx context.Context) (all []reconcile.Cell) {
	for _, p := range l.Executor.Cells() {
		all = append(all, reconcile.Draining(ctx, p, l.Ingress.AwaitIdle))
	}
	return all
}

// cellsOf are the tags of an AZ that is made of logical cells: its name, if a
// cell has that as a tag.
func (l *Loops) cellsOf(az string) []string {
	for _, p := range l.Executor.Cell.Parts() {
		if (lrp.Constraint{Require: []string{az}}).Allows(p.Presence().Tags) && az != "" {
			return []string{az}
		}
	}
	return nil
}

// Retire replaces an instance.
func (l *Loops) Retire(p *cf.Process, a *cf.App, index int) {
	if err := l.Reconcile.Retire(context.Background(), p, a, index); err != nil {
		l.Executor.Log.Error("instance not retired", "process_guid", p.GUID, "index", index, "err", err)
	}
}

// Start runs the loops in a group until live ends.
func (l *Loops) Start(live context.Context, group *fault.Group) {
	// Before the cell has adopted what runs, its silence means nothing.
	adopted := func(run func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			<-l.Executor.Cell.Adopted()
			return run(ctx)
		}
	}
	group.Go(fault.Loop(live, "reconcile", adopted(l.Reconcile.Run)))
	group.Go(fault.Loop(live, "reach", l.Reach.Run))
	group.Go(fault.Loop(live, "broker", l.Brokers.Run))
	l.DataBroker.Start(live, group)
	if l.DataBroker != nil {
		group.Go(fault.Loop(live, "measure", adopted(func(ctx context.Context) error { return l.Executor.Logs.EachMeasure(ctx, l.DataBroker.Measure) })))
	}
	l.Scaling.Start(live, group)
	group.Go(fault.Loop(live, "databackup", adopted(l.Backups.Run)))
	group.Go(fault.Loop(live, "routes", l.Ingress.Run))
	group.Go(fault.Loop(live, "sleep", adopted(l.Sleep.Run)))
	group.Go(fault.Loop(live, "deploy", adopted(l.Deploys.Run)))
	group.Go(fault.Loop(live, "director", adopted(l.Director.Run)))
}
