package cells

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

type moveCmd struct {
	capi.Flags
	placedArg
	To      string        `required:"" help:"The cell." placeholder:"CELL"`
	Timeout time.Duration `help:"How long an app may take; then it stays where it is." default:"5m"`
}

// Help says what moves.
func (c *moveCmd) Help() string {
	return "The space, or the app if one is named, gets a placement pool that leads to the cell alone. Then a rolling deployment restarts each of the started apps: " +
		"an instance on the old cell stops once one on the new cell is healthy. What could not be moved goes on where it is; the same command tries it again."
}

// movesAtOnce bounds the deployments under way: each has one instance more than its app.
const movesAtOnce = 3

// Run moves the apps.
func (c *moveCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	m := &move{Client: api, timeout: c.Timeout, show: command.NewReport(e)}
	if m.cells, m.to, err = findCell(e.Ctx, api, c.To); err != nil {
		return err
	}
	if m.placed, err = c.find(e, api); err != nil {
		return err
	}
	if err := m.place(e.Ctx); err != nil {
		return err
	}
	apps, err := m.apps(e.Ctx)
	if err != nil {
		return err
	}
	failed := m.deploy(e.Ctx, apps)
	if err := e.Ctx.Err(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d apps were not moved: they run where they did; mend the cause, then run the command again", failed, len(apps))
	}
	_, err = fmt.Fprintf(e.Out, "%s on %s: %d moved.\n", m.name, m.to.ID, len(apps))
	return err
}

// findCell gives all cells, and that of a name.
func findCell(ctx context.Context, api *capi.Client, name string) (all []cellView, cell cellView, err error) {
	if err := api.Call(ctx, "GET", "/v1/cells", nil, &all); err != nil {
		return nil, cell, err
	}
	var names []string
	for _, c := range all {
		names = append(names, c.ID)
		if !strings.EqualFold(c.ID, name) {
			continue
		}
		if c.Leaving || c.Unreachable {
			return nil, c, fmt.Errorf("cell %s takes nothing new now: see 'cupola cells'", c.ID)
		}
		return all, c, nil
	}
	return nil, cell, fmt.Errorf("there is no cell %s: give one of %s", name, strings.Join(names, ", "))
}

// move is one under way.
type move struct {
	*capi.Client
	placed

	cells   []cellView
	to      cellView
	segment []string          // the name of the space's isolation segment, if it has one: a tag that its apps require
	others  []string          // the names of other segments: they disallow these, unless their pool requires them
	pinned  map[string]string // names of apps' own pools that do not lead to the cell, by app
	timeout time.Duration
	show    *command.Report
}

// leads reports whether a pool leads to the cell, and to no other.
func (m *move) leads(p poolView) bool {
	require, disallow := slices.Concat(p.Require, m.segment), slices.Clone(p.Disallow)
	for _, other := range m.others {
		if !has(require, other) {
			disallow = append(disallow, other)
		}
	}
	for _, c := range m.cells {
		cell := lrp.Cell{Tags: c.Tags, RequiredTags: c.Required}
		if cell.Suits(lrp.Constraint{Require: require, Disallow: disallow}) != (c.ID == m.to.ID) {
			return false
		}
	}
	return true
}

func has(list []string, tag string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(t, tag) })
}

// place gives the space or the app a pool that leads to the cell: the one that it has, none, another one, or one that is made.
func (m *move) place(ctx context.Context) error {
	if err := m.findSegments(ctx); err != nil {
		return err
	}
	pools, err := capi.List[poolView](ctx, m.Client, "/v3/placement_pools?per_page=5000&order_by=name")
	if err != nil {
		return err
	}
	own, none := m.pools(pools)
	switch {
	case own.GUID != "" && m.leads(own), own.GUID == "" && m.leads(none):
		return nil
	case m.leads(none):
		m.show.Title("%s leaves the placement pool %s.", m.name, own.Name)
		return m.unassign(ctx, m.Client, "/v3/placement_pools/"+own.GUID)
	}
	i := slices.IndexFunc(pools, m.leads)
	if i < 0 {
		p, err := m.makePool(ctx)
		if err != nil {
			return err
		}
		pools, i = []poolView{p}, 0
	}
	m.show.Title("%s gets the placement pool %s.", m.name, pools[i].Name)
	return m.assign(ctx, m.Client, "/v3/placement_pools/"+pools[i].GUID)
}

// pools finds two pools: own is the one that the space or the app has, and none the one that it would use without: that of the app's space,
// or the default one. Either is empty if there is none. It notes which apps do not follow their space.
func (m *move) pools(all []poolView) (own, none poolView) {
	m.pinned = map[string]string{}
	for _, p := range all {
		if p.Default && none.GUID == "" || m.app != "" && p.Relationships.Spaces.has(m.space) {
			none = p
		}
		if m.has(p) {
			own = p
		}
		for _, a := range p.Relationships.Apps.Data {
			if m.app == "" && !m.leads(p) {
				m.pinned[a.GUID] = p.Name
			}
		}
	}
	return own, none
}

// findSegments finds the isolation segment of the space, else of its org, and the others.
func (m *move) findSegments(ctx context.Context) error {
	type resource struct {
		GUID, Name    string
		Relationships struct {
			Organization struct{ Data struct{ GUID string } }
		}
	}
	var space resource
	if err := m.Call(ctx, "GET", "/v3/spaces/"+m.space, nil, &space); err != nil {
		return err
	}
	var own string
	for _, path := range []string{"/v3/organizations/" + space.Relationships.Organization.Data.GUID + "/relationships/default_isolation_segment", "/v3/spaces/" + m.space + "/relationships/isolation_segment"} {
		var of struct{ Data *struct{ GUID string } }
		if err := m.Call(ctx, "GET", path, nil, &of); err != nil {
			return err
		}
		if of.Data != nil {
			own = of.Data.GUID
		}
	}
	all, err := capi.List[resource](ctx, m.Client, "/v3/isolation_segments?per_page=5000")
	for _, s := range all {
		switch s.GUID {
		case cf.SharedSegment:
		case own:
			m.segment = []string{s.Name}
		default:
			m.others = append(m.others, s.Name)
		}
	}
	if len(m.segment) > 0 && !has(m.to.Tags, m.segment[0]) {
		return fmt.Errorf("the apps of the space are in the isolation segment %s, and cell %s has no such tag: 'cf reset-space-isolation-segment' takes a space out of its own", m.segment[0], m.to.ID)
	}
	return err
}

// makePool makes a pool for the cell, named like it.
func (m *move) makePool(ctx context.Context) (poolView, error) {
	p := poolView{Name: m.to.ID, Require: m.to.Tags}
	if !m.leads(p) {
		return p, fmt.Errorf("no tags of cell %s lead to it alone: create a placement pool that does, with 'cupola placement-pools create'", m.to.ID)
	}
	err := m.Call(ctx, "POST", "/v3/placement_pools", capi.Doc{"name": p.Name, "require": p.Require}, &p)
	return p, err
}

// app is one that may move.
type app struct{ GUID, Name, State string }

// apps are those that were started elsewhere, or would be next time. It says which apps of a space do not follow it.
func (m *move) apps(ctx context.Context) ([]app, error) {
	type process struct {
		GUID          string
		Instances     int
		Placement     struct{ Outdated bool } // not in lists
		Relationships struct {
			App struct{ Data struct{ GUID string } }
		}
	}
	ofProcesses, ofApps := "space_guids="+m.space, "space_guids="+m.space
	if m.app != "" {
		ofProcesses, ofApps = "app_guids="+m.app, "guids="+m.app
	}
	processes, err := capi.List[process](ctx, m.Client, "/v3/processes?per_page=5000&"+ofProcesses)
	if err != nil {
		return nil, err
	}
	outdated := map[string]bool{}
	for _, p := range processes {
		if app := p.Relationships.App.Data.GUID; p.Instances > 0 && !outdated[app] {
			if err := m.Call(ctx, "GET", "/v3/processes/"+p.GUID, nil, &p); err != nil {
				return nil, err
			}
			outdated[app] = p.Placement.Outdated
		}
	}
	all, err := capi.List[app](ctx, m.Client, "/v3/apps?per_page=5000&order_by=name&"+ofApps)
	for _, a := range all {
		if pool := m.pinned[a.GUID]; pool != "" {
			m.show.Step(a.Name, "stays: it has its own placement pool %s; to move it, name it, too", pool)
		}
	}
	return slices.DeleteFunc(all, func(a app) bool {
		return a.State != "STARTED" || !outdated[a.GUID] || m.pinned[a.GUID] != ""
	}), err
}

// deploy moves apps, some at once, and says how each went. It returns how many did not move.
func (m *move) deploy(ctx context.Context, apps []app) (failed int) {
	var group fault.Group
	group.SetLimit(movesAtOnce)
	var mu sync.Mutex
	for _, a := range apps {
		group.Go(fault.ErrFunc("move", func() error {
			began := time.Now()
			err := m.roll(ctx, a)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				m.show.Step(a.Name, "not moved: %v", err)
				return nil
			}
			m.show.Step(a.Name, "moved in %.1f s", time.Since(began).Seconds())
			return nil
		}))
	}
	_ = group.Wait() // a panic is reported where it happens
	return failed
}

// roll restarts an app by a rolling deployment, and waits for its end. One that takes too long is cancelled: the old instances go on.
func (m *move) roll(ctx context.Context, a app) error {
	late, cancel := context.WithTimeoutCause(ctx, m.timeout, fmt.Errorf("its new instances are not healthy after %s: 'cupola app why %s' may say why", m.timeout, a.Name))
	defer cancel()
	var d struct {
		GUID   string
		Status struct{ Value, Reason string }
	}
	body := capi.Doc{"relationships": capi.Doc{"app": capi.ToOne(a.GUID)}}
	err := m.Call(late, "POST", "/v3/deployments", body, &d)
	for err == nil && d.Status.Value != "FINALIZED" {
		if err = capi.Pause(late, 200*time.Millisecond); err == nil {
			err = m.Call(late, "GET", "/v3/deployments/"+d.GUID, nil, &d)
		}
	}
	switch {
	case late.Err() != nil:
		return errors.Join(context.Cause(late), m.cancel(ctx, d.GUID))
	case err != nil:
		return errors.Join(err, m.cancel(ctx, d.GUID))
	case d.Status.Reason != "DEPLOYED":
		return fmt.Errorf("its deployment ended as %s", d.Status.Reason)
	}
	return nil
}

// cancelTime bounds the cancelling of a deployment.
const cancelTime = 20 * time.Second

// cancel ends a deployment, also when the command itself was ended.
func (m *move) cancel(ctx context.Context, deployment string) error {
	if deployment == "" {
		return nil
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer end()
	return m.Call(ctx, "POST", "/v3/deployments/"+deployment+"/actions/cancel", nil, nil)
}
