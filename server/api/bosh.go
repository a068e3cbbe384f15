package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bosh/director"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// viewBOSHDeployment is a deployment of BOSH's, without its manifest.
func viewBOSHDeployment(_ *call, d *cf.BOSHDeployment) doc {
	return with(resource(d.Resource), doc{"name": d.Name, "version": d.Version})
}

// viewBOSHFreshness says whether a deployment was made with the configs of now.
func viewBOSHFreshness(c *call, d *cf.BOSHDeployment) (doc, error) {
	cloud, runtime, err := director.Freshness(c.Tx, d)
	return with(viewBOSHDeployment(c, d), doc{"cloud_config": cloud, "runtime_config": runtime}), err
}

// findBOSHDeployment finds the deployment of {name}, for admins.
func findBOSHDeployment(c *call) (*cf.BOSHDeployment, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	name := c.param("name")
	d, err := store.BOSHDeployments.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}}})
	if store.IsNotFound(err) {
		return nil, cf.Errorf(cf.ResourceNotFound, "Deployment '%s' doesn't exist", name)
	}
	return d, err
}

func listBOSHDeployments(c *call) (*response, error) {
	rows, err := store.BOSHDeployments.Matching(c.Tx, store.Query{Order: "name"})
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, d := range rows {
		view, err := viewBOSHFreshness(c, d)
		if err != nil {
			return nil, err
		}
		all = append(all, view)
	}
	return ok(all)
}

func showBOSHDeployment(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	used, err := director.ConfigsOf(c.Tx, d)
	if err != nil {
		return nil, err
	}
	return ok(with(viewBOSHDeployment(c, d), doc{"manifest": string(d.Manifest), "configs": used}))
}

// listBOSHInstances lists the instances with what runs of them now.
func listBOSHInstances(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	rows, err := director.Observe(c.Tx, d)
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, r := range rows {
		all = append(all, viewBOSHInstance(c, r))
	}
	return ok(all)
}

func viewBOSHInstance(c *call, r director.Observed) doc {
	processes := []doc{}
	for _, a := range r.Actuals {
		processes = append(processes, with(doc{"guid": a.ProcessGUID, "name": a.Owner.Part, "state": strings.ToLower(string(a.State)), "ready": a.Ready, "role": a.Role,
			"crash_count": a.CrashCount, "details": a.CrashReason + a.PlacementError}, vitals(c, a)))
	}
	return doc{"guid": r.GUID, "group": r.Group, "index": r.Index, "az": r.AZ, "lifecycle": r.Lifecycle, "state": r.State, "since": r.Since,
		"address": r.Address, "processes": processes, "disk": r.DiskGUID, "stopped": r.Goal == cf.BOSHHalted, "up_to_date": r.Digest == r.Next, "failure": r.Failure}
}

// vitals are the resources that a process uses, if the query asks for them.
func vitals(c *call, a *lrp.Actual) doc {
	if c.Request.URL.Query().Get("vitals") != "true" || c.s.Stats == nil || a.InstanceGUID == "" {
		return doc{}
	}
	s, ok := c.s.Stats(a.InstanceGUID)
	if !ok {
		return doc{}
	}
	return doc{"cpu_percent": s.CPUPercent, "memory_bytes": s.MemoryBytes, "disk_bytes": s.DiskBytes, "uptime_seconds": int(s.Uptime.Seconds())}
}

// listBOSHErrands lists the names that a run-errand takes.
func listBOSHErrands(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	names, err := director.Errands(c.Tx, d)
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, name := range names {
		all = append(all, doc{"name": name})
	}
	return ok(all)
}

// listBOSHVariables lists the names of a deployment's values, never the values.
func listBOSHVariables(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	rows, err := store.BOSHVariables.Matching(c.Tx, store.Query{Where: map[string][]string{"deployment_guids": {d.GUID}}, Order: "name"})
	if err != nil {
		return nil, err
	}
	return ok(views(c, rows, func(_ *call, v *cf.BOSHVariable) doc {
		return with(resource(v.Resource), doc{"name": v.Name, "type": cmp.Or(v.Type, "given")})
	}))
}

// listBOSHDisks lists the persistent disks, including those that belong to no instance.
func listBOSHDisks(c *call) (*response, error) {
	rows, err := store.BOSHDisks.All(c.Tx)
	if err != nil {
		return nil, err
	}
	if c.Request.URL.Query().Get("orphaned") == "true" {
		rows = slices.DeleteFunc(rows, func(d *cf.BOSHDisk) bool { return d.OrphanedAt.IsZero() })
	}
	return ok(views(c, rows, func(_ *call, d *cf.BOSHDisk) doc {
		return with(resource(d.Resource), doc{"deployment": d.DeploymentName, "group": d.Group, "index": d.Index, "az": d.AZ,
			"size_mb": d.SizeMB, "orphaned": !d.OrphanedAt.IsZero(), "orphaned_at": d.OrphanedAt, "deleted_at": deletedAt(d)})
	}))
}

// deletedAt is when an orphaned disk will be deleted; zero for a disk in use.
func deletedAt(d *cf.BOSHDisk) (at time.Time) {
	if d.OrphanedAt.IsZero() {
		return at
	}
	return d.OrphanedAt.Add(director.KeepOrphans)
}

func orphanBOSHDisk(c *call) (*response, error) {
	d, err := store.BOSHDisks.Get(c.Tx, c.param("guid"))
	if err != nil {
		return nil, err
	}
	if err := director.OrphanDisk(c.Tx, c.identity.Username, d); err != nil {
		return nil, err
	}
	return noContent()
}

// attachRequest is the instance that gets a disk.
type attachRequest struct {
	Deployment string `json:"deployment"`
	Group      string `json:"group"`
	Index      int    `json:"index"`
}

func (r attachRequest) Validate() []string {
	return control.Must(r.Deployment != "" && r.Group != "", "Deployment, Group and Index must be given", r.Index >= 0, "Index must not be negative")
}

func attachBOSHDisk(c *call) (*response, error) {
	d, err := store.BOSHDisks.Get(c.Tx, c.param("guid"))
	if err != nil {
		return nil, err
	}
	var req attachRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := director.AttachDisk(c.Tx, c.identity.Username, d, req.Deployment, req.Group, req.Index); err != nil {
		return nil, err
	}
	return noContent()
}

// listBOSHProblems lists what a repair would mend.
func listBOSHProblems(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	all, err := director.Problems(c.Tx, d)
	if err != nil {
		return nil, err
	}
	return ok(append([]director.Problem{}, all...))
}

func deleteBOSHDisk(c *call) (*response, error) {
	d, err := store.BOSHDisks.Get(c.Tx, c.param("guid"))
	if err != nil {
		return nil, err
	}
	if err := director.DeleteDisk(c.Tx, c.identity.Username, d); err != nil {
		return nil, err
	}
	return noContent()
}

// rollout says how a task changes instances; "" leaves a count to the manifest.
type rollout struct {
	SkipDrain   bool   `json:"skip_drain"`
	Fix         bool   `json:"fix"`
	Canaries    string `json:"canaries"` // a number or a percentage, like MaxInFlight
	MaxInFlight string `json:"max_in_flight"`
}

func (r rollout) into(o director.Order) director.Order {
	o.SkipDrain, o.Fix, o.Canaries, o.MaxInFlight = r.SkipDrain, r.Fix, r.Canaries, r.MaxInFlight
	return o
}

// deployRequest is a manifest to be deployed. Ops are applied by the client, as
// the bosh CLI does it.
type deployRequest struct {
	Manifest string          `json:"manifest"`
	Values   director.Values `json:"values"`
	Lenient  bool            `json:"lenient"`
	Recreate bool            `json:"recreate"`
	// CreatedBefore recreates only instances whose containers are older.
	CreatedBefore time.Time `json:"created_before"`
	// RecreateDisks replaces persistent disks by copies of them.
	RecreateDisks bool     `json:"recreate_persistent_disks"`
	Rotate        []string `json:"rotate"`
	DryRun        bool     `json:"dry_run"`
	Force         bool     `json:"force"` // remove links although other deployments use them
	rollout
}

func (r deployRequest) Validate() []string {
	return control.Must(r.CreatedBefore.IsZero() || r.Recreate, "Created_before must be given with recreate alone")
}

// deployBOSH asks for a deploy. Errors in the manifest are in the answer.
func deployBOSH(c *call) (*response, error) {
	var req deployRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	order := req.into(director.Order{Manifest: req.Manifest, Values: req.Values, Lenient: req.Lenient, Recreate: req.Recreate, CreatedBefore: req.CreatedBefore, RecreateDisks: req.RecreateDisks, Rotate: req.Rotate, Force: req.Force})
	configs, err := director.Configs(c.Tx)
	if err != nil {
		return nil, err
	}
	name, found, err := order.Check(configs)
	if req.DryRun {
		return ok(doc{"findings": found})
	}
	if err != nil {
		return nil, cf.Unprocessable("%s", err)
	}
	return askBOSH(c, name, director.Deploy, order)
}

func askBOSH(c *call, deployment string, kind director.Kind, o director.Order) (*response, error) {
	t, err := director.Ask(c.Tx, deployment, c.identity.Username, kind, o)
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusAccepted, body: viewBOSHTask(c, t)}, nil
}

// boshTaskRequest asks for a task of an existing deployment.
type boshTaskRequest struct {
	Kind      string `json:"kind"`
	Group     string `json:"group"`
	Index     *int   `json:"index"`
	Errand    string `json:"errand"`
	DropDisks bool   `json:"delete_disks"`
	Force     bool   `json:"force"` // delete it although other deployments use its links
	// WhenChanged leaves out an errand that ran well as it is.
	WhenChanged bool `json:"when_changed"`
	// KeepAlive leaves what an errand has on its ephemeral disk to its next run.
	KeepAlive     bool             `json:"keep_alive"`
	Hard          bool             `json:"hard"`           // of a stop: delete the ephemeral disks, too
	Repair        bool             `json:"repair"`         // of a recreate: only instances that have a problem
	CreatedBefore time.Time        `json:"created_before"` // of a recreate: only instances whose containers are older
	Export        *director.Export `json:"export"`
	rollout
}

func (r boshTaskRequest) Validate() []string {
	ofInstances := []director.Kind{director.Start, director.Stop, director.Restart, director.Recreate}
	changes := slices.Contains(ofInstances, director.Kind(r.Kind))
	kinds := append(slices.Clone(ofInstances), director.Delete, director.RunErrand, director.ExportRelease)
	return control.Must(slices.Contains(kinds, director.Kind(r.Kind)), "Kind must be one of start, stop, restart, recreate, delete, run-errand and export-release",
		(r.Export != nil) == (r.Kind == string(director.ExportRelease)), "Export must be given for export-release, and for nothing else",
		(r.Errand != "") == (r.Kind == string(director.RunErrand)), "Errand must be given for run-errand, and for nothing else",
		r.Index == nil || r.Group != "", "Group must be given with Index",
		r.Group == "" || changes || r.Kind == string(director.RunErrand), "Group must be given for start, stop, restart, recreate and run-errand alone",
		!r.Hard || r.Kind == string(director.Stop), "Hard must be given for stop alone",
		!r.Fix || r.Kind == string(director.Recreate), "Fix must be given for recreate alone",
		r.CreatedBefore.IsZero() || r.Kind == string(director.Recreate), "Created_before must be given for recreate alone",
		!r.SkipDrain || changes, "Skip_drain must be given for start, stop, restart and recreate alone",
		!r.Repair || r.Kind == string(director.Recreate) && r.Group == "", "Repair must be given for recreate alone, without Group",
		r.Canaries+r.MaxInFlight == "" || changes, "Canaries and Max_in_flight must be given for start, stop, restart and recreate alone",
		!r.DropDisks || r.Kind == string(director.Delete), "Delete_disks must be given for delete alone",
		!r.Force || r.Kind == string(director.Delete), "Force must be given for delete alone")
}

func askBOSHTask(c *call) (*response, error) {
	d, err := findBOSHDeployment(c)
	if err != nil {
		return nil, err
	}
	var req boshTaskRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	return askBOSH(c, d.Name, director.Kind(req.Kind), req.into(director.Order{Group: req.Group, Index: req.Index, Errand: req.Errand, WhenChanged: req.WhenChanged,
		KeepAlive: req.KeepAlive, DropDisks: req.DropDisks, Force: req.Force, Hard: req.Hard, Repair: req.Repair, CreatedBefore: req.CreatedBefore, Export: req.Export}))
}
