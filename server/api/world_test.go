package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"cupola/rootfs/packed"
	"cupola/rootfs/registry"
	"cupola/runtime/lrp"
	"cupola/server/bosh/releases"
	"cupola/server/bosh/tarball"
	"cupola/server/bulkhead"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/stacks"
	"cupola/server/exact"
	"cupola/server/kube"
	"cupola/server/logcache"
	"cupola/server/seed"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// world is an API with its UAA on a real store, with an org, a space, an app
// and users of every role. GUIDs are "org-1", "space-1", "app-1", ….
type world struct {
	t       testing.TB
	url     string
	store   *store.Store
	blobs   *blob.Store
	dir     string
	mu      sync.Mutex // guards tokens
	tokens  map[string]string
	saved   map[string]string // what steps kept, for {name} in later steps
	retired []string
	usage   lrp.Stats // of every instance
	needs   []*need
	seeds   bool // the directory is new
	stop    func()
	server  *httptest.Server
	api     *Server
	slots   *bulkhead.Share[string]
}

// roleUsers are the users of a world, each named for his role.
var roleUsers = map[string]cf.RoleType{
	"org_user": cf.OrgUser, "org_manager": cf.OrgManager, "org_auditor": cf.OrgAuditor, "org_billing_manager": cf.OrgBillingManager,
	"space_developer": cf.SpaceDeveloper, "space_manager": cf.SpaceManager, "space_auditor": cf.SpaceAuditor, "space_supporter": cf.SpaceSupporter,
}

// scopeUsers are the users who are something everywhere.
var scopeUsers = map[string][]string{
	"admin": uaa.AdminScopes, "read_only_admin": {"cloud_controller.admin_read_only"}, "global_auditor": {"cloud_controller.global_auditor"}, "nobody": nil,
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), tokens: map[string]string{}, saved: map[string]string{}, seeds: true}
	files, err := emptyWorld()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.open()
	return w
}

// emptyWorld are the files of a world in which nothing is: its tables and keys
// take longer to make than most tests take.
var emptyWorld = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "cupola-api-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(store.Config{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = uaa.New(ctx, uaa.Config{Store: s, Log: log})
	cancel()
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, name := range []string{store.DatabaseFile, store.KeyFile} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// open serves what lies in the world's directory.
func (w *world) open() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	if w.store, err = store.Open(store.Config{Dir: w.dir, Log: log}); err != nil {
		w.t.Fatal(err)
	}
	if w.blobs, err = blob.Open(filepath.Join(w.dir, "blobs")); err != nil {
		w.t.Fatal(err)
	}
	if w.seeds {
		w.write(w.seed)
	}
	ua, err := uaa.New(ctx, uaa.Config{Store: w.store, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	w.slots = bulkhead.NewShare[string](400, 1)
	w.api = New(ctx, w.config(ua, log))
	mux.Handle("/", w.api)
	for _, p := range uaa.Paths() {
		mux.Handle(p, ua)
	}
	mux.Handle("/api/v1/", logcache.New(logcache.Config{}).Handler(func(_ *http.Request, ids ...string) (map[string]bool, error) {
		may := map[string]bool{}
		for _, id := range ids {
			may[id] = true
		}
		return may, nil
	}))
	w.server, w.stop = httptest.NewServer(exact.Paths(mux, w.api)), cancel
	w.url = w.server.URL
	w.t.Cleanup(func() { cancel(); w.server.Close(); w.store.Close() })
}

func (w *world) config(ua *uaa.UAA, log *slog.Logger) Config {
	return Config{Store: w.store, Blobs: w.blobs, Log: log,
		Authenticate: ua.Verify, Slots: w.slots,
		Stats:        func(string) (lrp.Stats, bool) { return w.usage, true },
		Retire:       func(p *cf.Process, _ *cf.App, i int) { w.retired = append(w.retired, fmt.Sprintf("%s/%d", p.GUID, i)) },
		Mails:        func(context.Context, string) (any, error) { return []doc{}, nil },
		DataServer:   func(context.Context, string) (any, error) { return doc{"version": "PostgreSQL 15"}, nil },
		Points:       func(context.Context, string) (any, error) { return doc{"enabled": false}, nil },
		Mail:         func(context.Context, string, string) ([]byte, error) { return []byte("mail"), nil },
		CheckBackup:  func(*store.Tx, string, bool) error { return nil },
		BackupEnding: func(service string) string { return service }, ReadBackup: func(b *cf.DataBackup, to io.Writer) error { _, err := to.Write(make([]byte, b.Size)); return err },
		Parameters: func(context.Context, ParameterQuery) (json.RawMessage, error) { return json.RawMessage(`{"a":1}`), nil },
		Releases: releases.Library{Blobs: w.blobs, Fetch: func(context.Context, string, tarball.Want) (*cf.BOSHRelease, error) {
			return &cf.BOSHRelease{Name: "fetched", Version: "1"}, nil
		}},
		RenderBOSH: func(_ context.Context, decode func(any) error) (any, error) {
			var r kube.RenderRequest
			if err := decode(&r); err != nil {
				return nil, err
			}
			return &kube.Rendered{Objects: "kind: Secret\n"}, nil
		},
		PackDroplet: func(_ context.Context, d *cf.Droplet, command string, progress func(PackStep)) (any, error) {
			progress(PackStep{What: "droplet " + d.GUID + " for " + command, Done: 1, Total: 2})
			return registry.Image{Digest: packedImage}, nil
		},
		PackedLayer: func(d *cf.Droplet, image, layer string) (*os.File, error) {
			if image != packedImage || layer != packedLayer {
				return nil, packed.ErrNotFound
			}
			return w.blobs.Open(d.Digest)
		},
		Platform: control.Platform{
			Cells: func() []lrp.CellUse {
				return []lrp.CellUse{{Cell: lrp.Cell{ID: "one", Tags: []string{"staging", "skynet"}, MemoryMB: 512, DiskMB: 1024, Containers: 250, RootFSes: []string{"lucid64", "cflinuxfs2"},
					RootFSProviders: []string{"docker"}}, UsedMemoryMB: 64, UsedDiskMB: 128, UsedContainers: 1}, {Cell: lrp.Cell{ID: "two", Tags: []string{"Staging"}, Problem: "there is no tunnel", Mend: "a route"}}}
			},
			Note: func(string, string) {},
			StackWarning: func(stack string) string {
				if stack == "future" {
					return "it wants another kernel"
				}
				return ""
			},
			Stacks:   fakeStacks{},
			URL:      "http://api.apps.test",
			TCPPorts: cf.PortRanges{{First: 1024, Last: 1027}},
			PortUsable: func(port int) error {
				if port == 1026 {
					return syscall.EADDRINUSE
				}
				return nil
			},
		},
	}
}

// fakeStacks has one that may go, one that the BBS uses and one that stays.
type fakeStacks struct{}

func (fakeStacks) Users(_ *store.Tx, name string) ([]string, error) {
	if name == "busy" {
		return []string{"LRP web", "task sum"}, nil
	}
	return nil, nil
}

func (fakeStacks) Remove(name string) error {
	if name == "host" {
		return errors.New("it is part of cupola")
	}
	return nil
}

func (fakeStacks) Offer() {}

func (w *world) write(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.store.Write(context.Background(), f); err != nil {
		w.t.Fatal(err)
	}
}

func guid(g string) cf.Resource { return cf.Resource{GUID: g} }

// seed makes the rows of a world.
func (w *world) seed(tx *store.Tx) error {
	rows := []func() error{
		func() error { return seed.Quota(tx) },
		func() error { return seed.SecurityGroups(tx) },
		func() error {
			return stacks.Offer(tx, []stacks.System{{Name: "minifs", Description: "small", Default: true}, {Name: "host"}})
		},
		func() error {
			return stacks.OfferBuildpacks(tx, []stacks.SystemBuildpack{{Name: "staticfile_buildpack", Filename: "s.zip", Digest: "s1"}, {Name: "ruby_buildpack", Filename: "r.zip", Digest: "r1"}, {Name: "go_buildpack", Filename: "g.zip", Digest: "g1"}})
		},
		func() error { return insertDefaultOrg(tx) },
		func() error {
			return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-1"), Name: "dev", OrgGUID: "org-1", AllowSSH: true})
		},
		func() error { return store.Orgs.Insert(tx, &cf.Org{Resource: guid("org-2"), Name: "other"}) },
		func() error {
			return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-2"), Name: "far", OrgGUID: "org-2"})
		},
		func() error {
			return store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-1"), Name: "apps.test"})
		},
		func() error { return seedApp(tx, "app-1", "hello") },
		func() error {
			return store.Routes.Insert(tx, &cf.Route{Resource: guid("route-1"), SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "hello",
				Destinations: []cf.Destination{{GUID: "dest-1", AppGUID: "app-1", ProcessType: "web", Protocol: "http1"}}})
		},
		func() error { return seedUsers(tx) },
	}
	for _, row := range rows {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

func insertDefaultOrg(tx *store.Tx) error {
	q, err := store.OrgQuotas.First(tx, store.Query{})
	if err != nil {
		return err
	}
	return store.Orgs.Insert(tx, &cf.Org{Resource: guid("org-1"), Name: "org", QuotaGUID: q.GUID})
}

// seedApp makes an app with process, package, build and droplet, whose GUIDs
// have the app's number.
func seedApp(tx *store.Tx, app, name string) error {
	_, n, _ := strings.Cut(app, "-")
	lifecycle := cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "minifs"}
	a := &cf.App{Resource: guid(app), Name: name, SpaceGUID: "space-1", State: cf.Stopped, Lifecycle: lifecycle, DropletGUID: "droplet-" + n, SSHEnabled: true, RevisionsOn: true}
	if err := store.Apps.Insert(tx, a); err != nil {
		return err
	}
	if err := store.Processes.Insert(tx, apps.NewProcess(a, "web")); err != nil {
		return err
	}
	if err := store.Packages.Insert(tx, &cf.Package{Resource: guid("package-" + n), AppGUID: app, Type: "bits", State: cf.PackageReady}); err != nil {
		return err
	}
	if err := store.Builds.Insert(tx, &cf.Build{Resource: guid("build-" + n), AppGUID: app, PackageGUID: "package-" + n, DropletGUID: "droplet-" + n, State: cf.BuildStaged, Lifecycle: lifecycle}); err != nil {
		return err
	}
	return store.Droplets.Insert(tx, &cf.Droplet{Resource: guid("droplet-" + n), AppGUID: app, PackageGUID: "package-" + n, BuildGUID: "build-" + n,
		State: cf.DropletStaged, Lifecycle: lifecycle, Stack: "minifs", ProcessTypes: map[string]string{"web": "./run", "worker": "./work"}})
}

func seedUsers(tx *store.Tx) error {
	hash, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	if err != nil {
		return err
	}
	add := func(name string, scopes []string) error {
		return store.Users.Insert(tx, &cf.User{Resource: guid("user-" + name), Username: name, Origin: uaa.Origin, PasswordHash: string(hash), Scopes: scopes})
	}
	for name, scopes := range scopeUsers {
		if err := add(name, scopes); err != nil {
			return err
		}
	}
	for name, t := range roleUsers {
		if err := add(name, nil); err != nil {
			return err
		}
		r := &cf.Role{Resource: guid("role-" + name), Type: t, UserGUID: "user-" + name, OrgGUID: "org-1"}
		if !t.OfOrg() {
			if err := store.Roles.Insert(tx, &cf.Role{Type: cf.OrgUser, UserGUID: r.UserGUID, OrgGUID: "org-1"}); err != nil {
				return err
			}
			r.SpaceGUID = "space-1"
		}
		if err := store.Roles.Insert(tx, r); err != nil {
			return err
		}
	}
	return nil
}

// token logs a user in.
func (w *world) token(user string) string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tokens[user]; t != "" {
		return t
	}
	req, _ := http.NewRequest("POST", w.url+"/oauth/token", strings.NewReader(url.Values{"grant_type": {"password"}, "username": {user}, "password": {"pw"}}.Encode()))
	req.SetBasicAuth("cf", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
		w.t.Fatalf("log %s in: %s, %v", user, res.Status, err)
	}
	w.tokens[user] = answer.AccessToken
	return answer.AccessToken
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	json   any
}

// anonymous has no token.
const anonymous = "anonymous"

// ask makes a request; a body is JSON unless kind says otherwise.
func (w *world) ask(user, method, path, body, kind string) answer {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if kind == "" {
		kind = "application/json"
	}
	req.Header.Set("Content-Type", kind)
	if user != anonymous {
		req.Header.Set("Authorization", "bearer "+w.token(user))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, text: strings.TrimSpace(string(text))}
	json.NewDecoder(bytes.NewReader(text)).Decode(&a.json)
	return a
}
