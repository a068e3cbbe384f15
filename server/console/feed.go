package console

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/server/desire"
	"cupola/store"
)

// source is a table whose rows the console shows as a kind of resource.
type source struct {
	kind    string
	columns []string
	open    bool // everybody sees that something of the kind changed, but not what
}

// sources are the tables that are followed. What a column means follows from its
// name: see resolve.
var sources = map[string]source{
	"apps":                      {kind: "app", columns: []string{"guid", "space_guid"}},
	"processes":                 {kind: "process", columns: []string{"guid", "app_guid"}},
	"actual_lrps":               {kind: "instance", columns: []string{"process_guid"}},
	"packages":                  {kind: "package", columns: []string{"guid", "app_guid"}},
	"builds":                    {kind: "build", columns: []string{"guid", "app_guid"}},
	"droplets":                  {kind: "droplet", columns: []string{"guid", "app_guid"}},
	"deployments":               {kind: "deployment", columns: []string{"guid", "app_guid"}},
	"revisions":                 {kind: "revision", columns: []string{"guid", "app_guid"}},
	"tasks":                     {kind: "task", columns: []string{"guid", "app_guid"}},
	"app_jobs":                  {kind: "app_job", columns: []string{"guid", "app_guid"}},
	"routes":                    {kind: "route", columns: []string{"guid", "space_guid"}},
	"route_apps":                {kind: "route", columns: []string{"route_guid", "app_guid"}},
	"service_instances":         {kind: "service_instance", columns: []string{"guid", "space_guid"}},
	"service_bindings":          {kind: "service_binding", columns: []string{"guid", "instance_guid", "app_guid"}},
	"events":                    {kind: "event", columns: []string{"guid", "space_guid", "org_guid", "target_guid"}},
	"orgs":                      {kind: "org", columns: []string{"guid"}},
	"spaces":                    {kind: "space", columns: []string{"guid", "org_guid"}},
	"roles":                     {kind: "role", columns: []string{"guid", "user_guid", "org_guid", "space_guid"}},
	"users":                     {kind: "user", columns: []string{"guid"}},
	"console_sessions":          {kind: "session", columns: []string{"key"}},
	"domains":                   {kind: "domain", open: true},
	"stacks":                    {kind: "stack", open: true},
	"buildpacks":                {kind: "buildpack", open: true},
	"feature_flags":             {kind: "feature_flag", open: true},
	"isolation_segments":        {kind: "isolation_segment", open: true},
	"placement_pools":           {kind: "isolation_segment", open: true},
	"service_brokers":           {kind: "service_broker", open: true},
	"service_offerings":         {kind: "service_offering", open: true},
	"service_plans":             {kind: "service_plan", open: true},
	"service_plan_visibilities": {kind: "service_plan", open: true},
	"security_groups":           {kind: "security_group", open: true},
	"org_quotas":                {kind: "quota", open: true},
	"space_quotas":              {kind: "quota", open: true},
	"bosh_deployments":          {kind: "bosh_deployment"},
	"bosh_instances":            {kind: "bosh_deployment"},
	"bosh_tasks":                {kind: "bosh_task"},
}

// anyGUID stands for any number of resources.
const anyGUID = "*"

// change is a resource that was written, as clients learn of it.
type change struct {
	Kind  string `json:"kind"`
	GUID  string `json:"guid"`
	App   string `json:"app,omitempty"`
	Space string `json:"space,omitempty"`

	org, user, instance string
	open                bool // everybody may know
	many                bool // stands for any number of rows
}

// batch is the changes of a moment.
type batch struct {
	number    uint64
	changes   []change
	authority bool // a user's rights or session may have changed
}

// The pace and the memory of the feed.
const (
	gather    = 100 * time.Millisecond // changes within it make one batch
	ringSize  = 1024                   // batches that a client may have missed and still get
	linger    = time.Minute            // how long the feed goes on without streams
	maxPlaces = 100000
)

// feed sends the changes of commits to streams. It follows the store only while there are
// streams.
type feed struct {
	store     *store.Store
	log       *slog.Logger
	authority func() // called when a user's rights or session may have changed

	wake chan struct{}

	mu      sync.Mutex
	users   int
	idle    *time.Timer
	stop    func() // of the store's watch; nil: not followed
	epoch   string // of the numbers
	pending []store.Touched
	ring    []batch
	last    uint64
	news    chan struct{} // closed with the next batch

	places map[string]string // GUID of an app, process or service instance → its space, or its app; run's own
}

func newFeed(s *store.Store, log *slog.Logger, authority func()) *feed {
	return &feed{store: s, log: log, authority: authority, wake: make(chan struct{}, 1), news: make(chan struct{}), places: map[string]string{}}
}

// hold keeps the store followed until release is called.
func (f *feed) hold() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	if f.idle != nil {
		f.idle.Stop()
	}
	if f.stop == nil {
		f.epoch, f.ring, f.pending = rand.Text()[:8], nil, nil
		columns := map[string][]string{}
		for table, s := range sources {
			columns[table] = s.columns
		}
		f.stop = f.store.Watch(columns, f.touched)
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.users--; f.users == 0 {
			f.idle = time.AfterFunc(linger, fault.Func("console", f.rest))
		}
	})
}

// rest ends the store's watch, if there are still no streams.
func (f *feed) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 && f.stop != nil {
		f.stop()
		f.stop, f.ring, f.pending = nil, nil, nil
	}
}

// touched takes rows of a commit, while others wait to write.
func (f *feed) touched(rows []store.Touched) {
	f.mu.Lock()
	f.pending = append(f.pending, rows...)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) run(ctx context.Context) error {
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
		f.advance(ctx)
		select {
		case <-time.After(gather):
		case <-ctx.Done():
			return nil
		}
	}
}

// advance makes a batch of what is pending.
func (f *feed) advance(ctx context.Context) {
	f.mu.Lock()
	rows := f.pending
	f.pending = nil
	f.mu.Unlock()
	changes, err := f.resolve(ctx, rows)
	if err != nil { // what is shown may be old now, and who asks again knows it
		f.log.ErrorContext(ctx, "changes not sent to the console", slog.Any("err", err))
	}
	f.mu.Lock()
	f.last++
	b := batch{f.last, changes, slices.ContainsFunc(changes, decides)}
	f.ring = append(f.ring, b)
	if len(f.ring) > ringSize {
		f.ring = slices.Delete(f.ring, 0, len(f.ring)-ringSize)
	}
	close(f.news)
	f.news = make(chan struct{})
	f.mu.Unlock()
	if b.authority {
		f.authority()
	}
}

// decides reports whether rights or sessions may follow from a change.
func decides(c change) bool {
	return slices.Contains([]string{"role", "user", "session", "org", "space", "app"}, c.Kind)
}

// position is a place in the feed.
type position struct {
	epoch string
	last  uint64
}

// now is the feed's end.
func (f *feed) now() position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return position{f.epoch, f.last}
}

// since returns the batches after a position, and a channel that is closed with the
// next one. ok is false when the feed no longer has them all.
func (f *feed) since(p position) (batches []batch, news <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.epoch != f.epoch || p.last > f.last || len(f.ring) > 0 && p.last+1 < f.ring[0].number || len(f.ring) == 0 && p.last != f.last {
		return nil, f.news, false
	}
	for _, b := range f.ring {
		if b.number > p.last {
			batches = append(batches, b)
		}
	}
	return batches, f.news, true
}

// resolve makes changes of rows: each once, with the app and the space it is of.
func (f *feed) resolve(ctx context.Context, rows []store.Touched) ([]change, error) {
	changes := make([]change, 0, len(rows))
	for _, r := range rows {
		changes = append(changes, changeOf(r))
	}
	if len(f.places) > maxPlaces {
		clear(f.places)
	}
	for _, c := range changes { // those that are gone have their place in their own row
		if (c.Kind == "app" || c.Kind == "service_instance") && c.Space != "" {
			f.places[c.GUID] = c.Space
		}
		if c.Kind == "process" && c.App != "" {
			f.places[c.GUID] = c.App
		}
	}
	err := f.learn(ctx, changes)
	for i := range changes {
		f.place(&changes[i])
	}
	return distinct(changes), err
}

// changeOf reads a row's columns by their names.
func changeOf(r store.Touched) change {
	s := sources[r.Table]
	c := change{Kind: s.kind, GUID: anyGUID, open: s.open, many: len(s.columns) > 0 && len(r.Values) == 0}
	for i, v := range r.Values {
		switch s.columns[i] {
		case "guid", "route_guid", "key":
			c.GUID = v
		case "process_guid":
			c.GUID = desire.CFProcess(v)
		case "app_guid":
			c.App = v
		case "space_guid":
			c.Space = v
		case "org_guid":
			c.org = v
		case "user_guid":
			c.user = v
		case "instance_guid":
			c.instance = v
		case "target_guid":
			c.App = v // of most events
		}
	}
	return c
}

// distinct leaves each change once.
func distinct(changes []change) []change {
	seen := make(map[change]bool, len(changes))
	return slices.DeleteFunc(changes, func(c change) bool {
		was := seen[c]
		seen[c] = true
		return was
	})
}
