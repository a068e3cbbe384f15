package chaos

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/test/e2e"
)

// tenant is a user with their own org, space and apps, who remembers
// what the API has acknowledged.
type tenant struct {
	t      testing.TB
	d      *e2e.Daemon
	name   string
	space  string // GUID
	client *e2e.Client
	rand   *rand.Rand
	stop   func()
	done   sync.WaitGroup

	mu           sync.Mutex
	apps         memory
	made         int // apps so far, for their names
	asked        int // requests
	acknowledged int
	refused      int  // requests without an answer, or with one of 400 and above
	failed       bool // the last request was refused
}

// memory is what the API said of apps, by their names.
type memory map[string]*remembered

// remembered is what the API said of an app. Where a request got no answer,
// either of two states will do.
type remembered struct {
	guid     string
	exists   tristate
	label    []string          // what it may be: the last that was acknowledged, and the one on its way
	packages map[string]string // GUID → SHA-256 of what was uploaded, for uploads that were acknowledged
}

type tristate int

const (
	no tristate = iota
	yes
	unknown
)

func newTenant(d *e2e.Daemon, n int, seed uint64) *tenant {
	d.T.Helper()
	name := fmt.Sprintf("tenant-%d", n)
	var user, org, space struct {
		ID   string
		GUID string
	}
	d.API("POST", "/Users", e2e.Doc{"userName": name, "password": "pw-" + name, "origin": "uaa"}, &user)
	d.API("POST", "/v3/users", e2e.Doc{"guid": user.ID}, nil)
	d.API("POST", "/v3/organizations", e2e.Doc{"name": name}, &org)
	d.API("POST", "/v3/spaces", e2e.Doc{"name": "dev", "relationships": e2e.Doc{"organization": e2e.ToOne(org.GUID)}}, &space)
	d.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), "organization": e2e.ToOne(org.GUID)}}, nil)
	d.API("POST", "/v3/roles", e2e.Doc{"type": "space_developer", "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), "space": e2e.ToOne(space.GUID)}}, nil)
	c, err := e2e.Login(context.Background(), "http://"+d.Addr, name, "pw-"+name)
	if err != nil {
		d.T.Fatal(err)
	}
	c.HTTP = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}}
	return &tenant{t: d.T, d: d, name: name, space: space.GUID, client: c, rand: rand.New(rand.NewPCG(seed, uint64(n))), apps: memory{}}
}

// begin makes changes, one after the other, until end.
func (t *tenant) begin(round int) {
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	t.done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			t.change(fmt.Sprintf("%d-%d", round, n))
			if t.failing() { // a daemon that is away or full is not asked a thousand times
				<-time.After(20 * time.Millisecond)
			}
		}
	})
}

func (t *tenant) end() {
	t.stop()
	t.done.Wait()
}

// failing reports whether the last request was refused.
func (t *tenant) failing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// change makes one change of a random kind.
func (t *tenant) change(value string) {
	names := t.existing()
	if len(names) < 3 || t.rand.IntN(6) == 0 && len(names) < 40 {
		t.create()
		return
	}
	name := names[t.rand.IntN(len(names))]
	switch t.rand.IntN(4) {
	case 0:
		t.upload(name, value)
	case 1:
		t.remove(name)
	default:
		t.label(name, value)
	}
}

// existing are the names of the apps that exist for sure.
func (t *tenant) existing() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(t.apps)) {
		if t.apps[name].exists == yes {
			names = append(names, name)
		}
	}
	return names
}

// ask makes a request, and then notes, under the lock, what follows from it.
func (t *tenant) ask(method, path string, body, out any, note func(error)) {
	err := t.client.Call(context.Background(), method, path, body, out)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(err)
	note(err)
}

// count counts a request; t.mu is held.
func (t *tenant) count(err error) {
	t.asked++
	if t.failed = err != nil; t.failed {
		t.refused++
	} else {
		t.acknowledged++
	}
}

func (t *tenant) create() {
	t.mu.Lock()
	t.made++
	name := fmt.Sprintf("%s-%d", t.name, t.made)
	app := &remembered{exists: unknown, label: []string{""}, packages: map[string]string{}}
	t.apps[name] = app
	t.mu.Unlock()
	var made struct{ GUID string }
	t.ask("POST", "/v3/apps", e2e.Doc{"name": name, "relationships": e2e.Doc{"space": e2e.ToOne(t.space)}}, &made, func(err error) {
		if err == nil {
			app.guid, app.exists = made.GUID, yes
		}
	})
}

func (t *tenant) label(name, value string) {
	t.mu.Lock()
	app := t.apps[name]
	app.label = append(app.label, value)
	t.mu.Unlock()
	t.ask("PATCH", "/v3/apps/"+app.guid, e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"chaos": value}}}, nil, func(err error) {
		if err == nil {
			app.label = []string{value}
		}
	})
}

func (t *tenant) remove(name string) {
	t.mu.Lock()
	app := t.apps[name]
	app.exists = unknown
	t.mu.Unlock()
	t.ask("DELETE", "/v3/apps/"+app.guid, nil, nil, func(err error) {
		if err == nil {
			app.exists = no
		}
	})
}

// upload makes a package of up to 300 kB that does not compress.
func (t *tenant) upload(name, value string) {
	t.mu.Lock()
	app := t.apps[name]
	t.mu.Unlock()
	content := make([]byte, 1000+t.rand.IntN(300_000))
	for i := range content {
		content[i] = byte(t.rand.Uint32())
	}
	var pkg struct{ GUID string }
	t.ask("POST", "/v3/packages", e2e.Doc{"type": "bits", "relationships": e2e.Doc{"app": e2e.ToOne(app.guid)}}, &pkg, func(error) {})
	if pkg.GUID == "" {
		return
	}
	bits, err := e2e.Zip("bits-"+value, content)
	if err != nil {
		t.t.Error(err)
		return
	}
	err = t.client.Upload(context.Background(), pkg.GUID, bits)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count(err); err != nil {
		return
	}
	app.packages[pkg.GUID] = "bits-" + value + " " + digestOf(content)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// appView is what the API says of an app.
type appView struct {
	GUID, Name string
	Metadata   struct{ Labels map[string]string }
}

// remembers is what the tenant knows at this moment.
func (t *tenant) remembers() memory {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := memory{}
	for name, app := range t.apps {
		other := *app
		other.label, other.packages = slices.Clone(app.label), maps.Clone(app.packages)
		m[name] = &other
	}
	return m
}

// check holds what a daemon has against what was acknowledged.
func (t *tenant) check(d *e2e.Daemon, m memory) (have map[string]appView) {
	t.t.Helper()
	c := *t.client
	c.API = "http://" + d.Addr
	all, err := e2e.List[appView](context.Background(), &c, "/v3/apps?per_page=1000&space_guids="+t.space)
	if err != nil {
		t.t.Errorf("%s: list apps: %v", t.name, err)
		return nil
	}
	have = map[string]appView{}
	for _, a := range all {
		have[a.Name] = a
		if m[a.Name] == nil {
			t.t.Errorf("%s: app %s is there, which was never created", t.name, a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		a, there := have[name]
		t.checkApp(m[name], name, a, there)
	}
	t.checkPackages(&c, m)
	return have
}

func (t *tenant) checkApp(want *remembered, name string, a appView, there bool) {
	t.t.Helper()
	switch label := a.Metadata.Labels["chaos"]; {
	case want.exists == yes && !there:
		t.t.Errorf("%s: lost app %s", t.name, name)
	case want.exists == no && there:
		t.t.Errorf("%s: app %s is back, whose deletion was acknowledged", t.name, name)
	case there && !slices.Contains(want.label, label):
		t.t.Errorf("%s: app %s has label %q; want one of %q", t.name, name, label, want.label)
	}
}

// resolve takes what is on the daemon for what is so from now on, where that
// was unknown.
func (t *tenant) resolve(have map[string]appView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, app := range t.apps {
		a, there := have[name]
		if !there {
			delete(t.apps, name)
			continue
		}
		app.guid, app.exists, app.label = a.GUID, yes, []string{a.Metadata.Labels["chaos"]}
	}
}

// maxLooked bounds the packages that one check downloads.
const maxLooked = 5

// checkPackages holds that packages that were taken have what was uploaded.
func (t *tenant) checkPackages(c *e2e.Client, m memory) {
	t.t.Helper()
	looked := 0
	for _, app := range m { // in a random order
		for guid, uploaded := range app.packages {
			if looked++; app.exists != yes || looked > maxLooked {
				continue
			}
			if err := checkPackage(c, guid, uploaded); err != nil {
				t.t.Errorf("%s: package %s: %v", t.name, guid, err)
			}
		}
	}
}

// checkPackage downloads a package; uploaded is a file's name and its digest.
func checkPackage(c *e2e.Client, guid, uploaded string) error {
	req, err := http.NewRequest("GET", c.URL("/v3/packages/"+guid+"/download"), nil)
	if err != nil {
		return err
	}
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	name, digest, _ := strings.Cut(uploaded, " ")
	got, err := fs.ReadFile(z, name)
	if err == nil && digestOf(got) != digest {
		err = fmt.Errorf("%s has other content than was uploaded", name)
	}
	return err
}
