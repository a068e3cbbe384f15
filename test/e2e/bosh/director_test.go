package bosh

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// directorDaemon is a daemon that serves the director's API.
type directorDaemon struct {
	*releaseDaemon
	url   string
	http  *http.Client
	token string
}

// startDirector starts a daemon with the director's API, and with the images of the
// deployment "hands".
func startDirector(t *testing.T) *directorDaemon {
	t.Helper()
	binary := e2e.NeedBinary(t)
	b := &boshDaemon{registry: e2e.StartRegistry(t), name: "hands", manifest: "testdata/hands.yml"}
	b.registry.Push(t, "test-1-1", v1.Config{}, e2e.LayerOf(t, append(systemEntries(), jobEntries(t)...)...))
	b.Daemon = e2e.StartDaemon(t, binary, "--director", "127.0.0.1:0", "--stemcell-stack", "ubuntu-jammy=host")
	d := &directorDaemon{releaseDaemon: &releaseDaemon{b, filepath.Join(t.TempDir(), "demo")}}
	if err := os.CopyFS(d.dir, os.DirFS("testdata/release")); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(d.Dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	d.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	d.find()
	return d
}

// find reads where the director is; after a start of the daemon it is elsewhere.
func (d *directorDaemon) find() {
	d.T.Helper()
	at, err := os.ReadFile(filepath.Join(d.Dir, "director"))
	if err != nil {
		d.T.Fatal(err)
	}
	d.url = strings.TrimSpace(string(at))
}

// login gets a token as the bosh CLI does, from the UAA that the director names.
func (d *directorDaemon) login(form url.Values, client, secret string) {
	d.T.Helper()
	var info struct {
		Auth struct {
			Type    string
			Options struct{ URL string }
		} `json:"user_authentication"`
		User string
	}
	d.token = ""
	d.get("/info", &info)
	if info.Auth.Type != "uaa" || info.User != "" {
		d.T.Fatalf("got %+v; want a UAA, and no user", info)
	}
	req, err := http.NewRequest("POST", info.Auth.Options.URL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		d.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(client, secret)
	var token struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	if status, _, text := d.send(req); status != 200 || json.Unmarshal(text, &token) != nil || token.AccessToken == "" {
		d.T.Fatalf("got %d, %s; want a token", status, text)
	}
	d.token = token.AccessToken
	if form.Get("grant_type") == "password" {
		d.login(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.RefreshToken}}, client, secret)
	}
}

func (d *directorDaemon) send(req *http.Request) (status int, header http.Header, text []byte) {
	d.T.Helper()
	res, err := d.http.Do(req)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(res.Body); err != nil {
		d.T.Fatal(err)
	}
	return res.StatusCode, res.Header, text
}

// call makes a request; header are pairs of names and values.
func (d *directorDaemon) call(method, path, body string, header ...string) (status int, location string, text []byte) {
	d.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.T.Fatal(err)
	}
	if d.token != "" {
		req.Header.Set("Authorization", "bearer "+d.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	status, h, text := d.send(req)
	return status, h.Get("Location"), text
}

func (d *directorDaemon) get(path string, v any) {
	d.T.Helper()
	if status, _, text := d.call("GET", path, ""); status != 200 || json.Unmarshal(text, v) != nil {
		d.T.Fatalf("GET %s: got %d, %s", path, status, text)
	}
}

// refused makes a request that must fail with a status and a text.
func (d *directorDaemon) refused(status int, want, method, path, body string) {
	d.T.Helper()
	got, _, text := d.call(method, path, body)
	var e struct {
		Code        int
		Description string
	}
	if err := json.Unmarshal(text, &e); err != nil || got != status || !strings.Contains(e.Description, want) {
		d.T.Errorf("%s %s: got %d, %s, %v; want %d, %q", method, path, got, text, err, status, want)
	}
}

// task makes a request that a task answers, polls the task's events by ranges, as the CLI
// does, and returns how it ended, its events and its result.
func (d *directorDaemon) task(method, path, body string, header ...string) (state string, events []eventLine, result string) {
	d.T.Helper()
	status, location, text := d.call(method, path, body, header...)
	if status != http.StatusFound || !strings.HasPrefix(location, "/tasks/") {
		d.T.Fatalf("%s %s: got %d, %s; want a redirect to a task", method, path, status, text)
	}
	var log []byte
	for end := time.Now().Add(2 * time.Minute); ; {
		var t struct{ State, Result string }
		d.get(location, &t)
		status, _, text := d.call("GET", location+"/output?type=event", "", "Range", fmt.Sprintf("bytes=%d-", len(log)))
		switch status {
		case http.StatusOK, http.StatusPartialContent:
			log = append(log, text...)
		case http.StatusRequestedRangeNotSatisfiable:
		default:
			d.T.Fatalf("got %d, %s of the events of %s", status, text, location)
		}
		if t.State != "queued" && t.State != "processing" {
			_, _, text := d.call("GET", location+"/output?type=result", "")
			return t.State, eventsOf(d.T, log), string(text)
		}
		if time.Now().After(end) {
			d.T.Fatalf("%s is %s", location, t.State)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// eventLine is a line of the director's event log.
type eventLine struct {
	Time               int64
	Stage, Task, State string
	Tags               []string
	Index, Total       int
	Data               struct{ Error string }
	Error              struct{ Message string }
}

func eventsOf(t testing.TB, log []byte) (all []eventLine) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var e eventLine
		if err := json.Unmarshal(line, &e); err != nil || e.Time == 0 {
			t.Fatalf("event %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// done is task of one that must succeed.
func (d *directorDaemon) done(method, path, body string, header ...string) (events []eventLine, result string) {
	d.T.Helper()
	state, events, result := d.task(method, path, body, header...)
	if state != "done" {
		d.T.Fatalf("%s %s: the task is %s: %+v", method, path, state, events)
	}
	return events, result
}

// manifestOfHands is the manifest of hands as the bosh CLI sends it.
func (d *directorDaemon) manifestOfHands() string {
	d.T.Helper()
	text, err := os.ReadFile(d.manifest)
	if err != nil {
		d.T.Fatal(err)
	}
	return strings.NewReplacer("((registry))", d.registry.Host, "((registry_user))", e2e.RegistryUser, "((registry_password))", e2e.RegistryPassword).Replace(string(text))
}

// TestDirector does with the director's API what the bosh CLI does.
func TestDirector(t *testing.T) {
	t.Parallel()
	d := startDirector(t)
	for _, path := range []string{"/deployments", "/tasks/1/output?type=event", "/resources/x", "/orphaned_vms"} {
		d.refused(http.StatusUnauthorized, "Not authorized", "GET", path, "")
	}
	d.login(url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {e2e.AdminPassword}}, "bosh_cli", "")
	var info struct{ User, UUID string }
	if d.get("/info", &info); info.User != "admin" || info.UUID == "" {
		t.Errorf("got %+v", info)
	}
	contains(t, d.must(d.Run("credentials", "--director", "--data-dir", d.Dir)), "export BOSH_ENVIRONMENT='"+d.url+"'", "export BOSH_CLIENT='admin'", "export BOSH_CLIENT_SECRET='"+e2e.AdminPassword+"'")
	if status, _, text := d.call("GET", "/passcode", ""); status != 200 && status != 302 && status != 303 {
		t.Errorf("got %d, %s; want the UAA's page that log-in names", status, text)
	}
	d.refused(http.StatusNotFound, "Endpoint '/deployments//hands' not found", "GET", "/deployments//hands", "")
	d.refused(http.StatusNotFound, "Endpoint '/uaa' not found", "GET", "/uaa", "")
	d.directorDeploys(t)
	d.directorChanges(t)
	d.directorSSH(t)
	d.directorReleases(t)
	d.directorConfigs(t)
	d.directorReaders(t)
	d.directorDisks(t)
}

// directorDisks replaces the disks of hands, and deletes it and them.
func (d *directorDaemon) directorDisks(t *testing.T) {
	t.Helper()
	events, _ := d.done("POST", "/deployments?recreate_persistent_disks=true", d.manifestOfHands())
	if !slices.ContainsFunc(events, func(e eventLine) bool { return e.Stage == "Copying disks" && e.State == "finished" }) {
		t.Errorf("got %+v; want copies of the disks", events)
	}
	if events, _ := d.done("DELETE", "/deployments/hands", ""); len(events) == 0 || events[0].Stage != "Deleting unneeded instances" {
		t.Errorf("got %+v of a delete", events)
	}
	d.refused(404, "Deployment 'hands' doesn't exist", "GET", "/deployments/hands", "")
	var disks []struct {
		CID  string `json:"disk_cid"`
		Size int
	}
	if d.get("/disks", &disks); len(disks) != 4 || disks[0].Size != 32 {
		t.Errorf("got %+v; want four orphaned disks: two were replaced", disks)
	}
	d.done("POST", "/cleanup", `{"config": {"remove_all": true}}`)
	if d.get("/disks", &disks); len(disks) != 0 {
		t.Errorf("got %+v after a clean-up", disks)
	}
}

// directorDeploys deploys hands, and looks at what came of it.
func (d *directorDaemon) directorDeploys(t *testing.T) {
	t.Helper()
	text := strings.Replace(d.manifestOfHands(), "  lifecycle: errand\n", "  lifecycle: errand\n  vm_type: small\n", 1)
	var diff struct{ Diff [][]any }
	status, _, answer := d.call("POST", "/deployments/hands/diff?redact=true", text)
	if err := json.Unmarshal(answer, &diff); err != nil || status != 200 || len(diff.Diff) == 0 || diff.Diff[0][1] != "added" || bytes.Contains(answer, []byte(e2e.RegistryPassword)) {
		t.Errorf("got %d, %s of a diff; want lines that are added, without credentials", status, answer)
	}
	d.refused(400, "/instance_groups", "POST", "/deployments", "name: hands\ninstance_groups: 3\n")
	d.refused(400, "Must pass recreate=true", "POST", "/deployments?recreate_vms_created_before=2030-01-01T00:00:00Z", text)
	d.refused(400, "Invalid RFC 3339 timestamp", "POST", "/deployments?recreate=true&recreate_vms_created_before=now", text)
	events, _ := d.done("POST", "/deployments", text)
	if at := slices.IndexFunc(events, func(e eventLine) bool {
		return e.Stage == "Updating instance" && slices.Equal(e.Tags, []string{"worker"}) && e.State == "started"
	}); at < 0 {
		t.Errorf("got %+v; want the update of worker", events)
	}
	var all []struct {
		Name     string
		Releases []struct{ Name, Version string }
	}
	if d.get("/deployments", &all); len(all) != 1 || all[0].Name != "hands" || len(all[0].Releases) != 1 || all[0].Releases[0].Version != "1" {
		t.Errorf("got %+v", all)
	}
	var one struct{ Manifest string }
	if d.get("/deployments/hands", &one); !strings.Contains(one.Manifest, e2e.RegistryPassword) {
		t.Errorf("got %s; want the manifest, with credentials for an admin", one.Manifest)
	}
	infos := d.infos("instances")
	if len(infos) != 3 || infos[1].JobName != "worker" || infos[1].JobState != "running" || len(infos[1].IPs) != 1 || len(infos[1].Processes) != 1 || len(infos[1].Disks) != 1 {
		t.Errorf("got %+v; want an errand and two workers", infos)
	}
	if errand := infos[0]; errand.JobName != "checks" || errand.VMType != "small" {
		t.Errorf("got %+v; want the errand with its VM type", errand)
	}
	if vms := d.infos("vms"); len(vms) != 2 || vms[0].VMCID == "" {
		t.Errorf("got %+v; want two VMs", vms)
	}
}

type instanceInfo struct {
	JobName   string `json:"job_name"`
	ID        string
	Index     int
	AZ        string
	Bootstrap bool
	JobState  string `json:"job_state"`
	State     string
	VMCID     string   `json:"vm_cid"`
	VMType    string   `json:"vm_type"`
	Disks     []string `json:"disk_cids"`
	IPs       []string
	Processes []struct{ Name, State string }
}

func (d *directorDaemon) infos(what string) (all []instanceInfo) {
	d.T.Helper()
	_, result := d.done("GET", "/deployments/hands/"+what+"?format=full", "")
	for line := range strings.Lines(result) {
		var i instanceInfo
		if err := json.Unmarshal([]byte(line), &i); err != nil {
			d.T.Fatalf("instance %q: %v", line, err)
		}
		all = append(all, i)
	}
	return all
}

// directorChanges runs errands, stops and starts instances, and reads logs.
func (d *directorDaemon) directorChanges(t *testing.T) {
	t.Helper()
	_, result := d.done("POST", "/deployments/hands/errands/worker/runs", `{"keep-alive": false, "when-changed": false, "instances": [{"group": "worker", "id": "1"}]}`)
	var run struct {
		Instance struct{ Group, ID string }
		ExitCode int `json:"exit_code"`
		Stdout   string
		Stderr   string
		Logs     struct {
			ID string `json:"blobstore_id"`
		}
	}
	if err := json.Unmarshal([]byte(result), &run); err != nil || run.Instance.Group != "worker" || run.Stdout != "checked 1\n" || run.Stderr != "nothing is wrong\n" {
		t.Errorf("got %s, %v of an errand", result, err)
	}
	_, _, archive := d.call("GET", "/resources/"+run.Logs.ID, "")
	if names := archivedNames(t, archive); !slices.Contains(names, "./worker/run.stdout.log") {
		t.Errorf("got %v; want the logs of the errand's instance", names)
	}
	d.done("POST", "/deployments", strings.Replace(d.manifestOfHands(), "exit: 0", "exit: 3", 1))
	_, result = d.done("POST", "/deployments/hands/errands/checks/runs", `{}`) // only then does the CLI ask for what it wrote
	if err := json.Unmarshal([]byte(result), &run); err != nil || run.Instance.Group != "checks" || run.ExitCode != 3 || !strings.HasPrefix(run.Stdout, "run 1") {
		t.Errorf("got %s, %v of an errand that exits with 3", result, err)
	}
	d.done("POST", "/deployments", d.manifestOfHands())
	if state, events, _ := d.task("POST", "/deployments", strings.Replace(d.manifestOfHands(), "/stacks", "/nothing", 1)); state != "error" || len(events) == 0 || events[len(events)-1].Error.Message == "" {
		t.Errorf("got %s, %+v of a release that is not there; want an error at the end of the events", state, events)
	}
	before := d.infos("instances")[2]
	worker := before.ID
	tried, _ := d.done("PUT", "/deployments/hands/jobs/worker/"+worker+"?state=recreate&dry_run=true", "")
	if len(tried) != 2 || tried[0].Stage != "Would recreate" || !strings.HasPrefix(tried[0].Task, "worker/1 ") || !slices.Equal(d.infos("instances")[2].IPs, before.IPs) {
		t.Errorf("got %+v; want a dry run that names worker/1 and gives it no new containers", tried)
	}
	d.refused(400, "dry runs of deploy and recreate alone", "PUT", "/deployments/hands/jobs/worker?state=restart&dry_run=true", "")
	d.done("PUT", "/deployments/hands/jobs/worker/"+worker+"?state=stopped", "")
	if got := d.infos("instances")[2]; got.JobState != "stopped" || got.State != "stopped" {
		t.Errorf("got %+v; want it stopped", got)
	}
	d.done("PUT", "/deployments/hands/jobs/*?state=started&max_in_flight=2", "")
	d.done("POST", "/deployments/hands/instance_groups/worker/0/actions/restart?skip_drain=true", "")
	d.refused(404, "'worker/none' doesn't exist", "PUT", "/deployments/hands/jobs/worker/none?state=stopped", "")
	d.refused(400, "Unknown state", "PUT", "/deployments/hands/jobs/worker?state=gone", "")
	d.refused(400, "cannot skip the drain scripts of some", "PUT", "/deployments/hands/jobs/worker?state=stopped&skip_drain=worker", "")

	status, location, _ := d.call("GET", "/deployments/hands/jobs/worker/*/logs?type=job", "")
	var task struct{ Result string }
	if d.get(location, &task); status != 302 {
		t.Fatalf("got %d of logs", status)
	}
	status, _, archive = d.call("GET", "/resources/"+task.Result, "")
	if names := archivedNames(t, archive); status != 200 || len(names) != 2 || !strings.HasPrefix(names[0], "./worker.") {
		t.Errorf("got %d, %v; want the archives of two workers", status, names)
	}
	_, location, _ = d.call("GET", "/deployments/hands/jobs/worker/1/logs?type=job&filters=worker/*.log", "")
	d.get(location, &task)
	_, _, archive = d.call("GET", "/resources/"+task.Result, "")
	if names := archivedNames(t, archive); !slices.Contains(names, "./worker/run.stdout.log") || !slices.Contains(names, "./worker/run.stderr.log") {
		t.Errorf("got %v; want what the errand wrote", names)
	}
	for _, id := range []string{"x", "eyJkIjoiLi4vLi4ifQ", "e30"} {
		d.refused(404, "not found", "GET", "/resources/"+id, "")
	}
	var problems []any
	d.done("POST", "/deployments/hands/scans", "")
	if d.get("/deployments/hands/problems", &problems); len(problems) != 0 {
		t.Errorf("got %v; want no problems", problems)
	}
	var tasks, changing []struct{ Description string }
	d.get("/tasks?limit=100&verbose=2", &tasks)
	d.get("/tasks?limit=100&verbose=1", &changing)
	if len(tasks) <= len(changing) || slices.ContainsFunc(changing, func(t struct{ Description string }) bool { return t.Description == "retrieve vm-stats" }) {
		t.Errorf("got %v and %v; want tasks that only read in the first list alone", tasks, changing)
	}
	d.refused(400, "Cannot cancel task 1", "DELETE", "/task/1", "")
	d.refused(404, "Task 9999 not found", "GET", "/tasks/9999", "")
	var events []struct{ ID, Action, User string }
	if d.get("/events?deployment=hands&action=create", &events); len(events) == 0 || events[0].User != "admin" {
		t.Errorf("got %+v of events", events)
	}
}

// archivedNames are the names in a gzipped tar.
func archivedNames(t testing.TB, text []byte) (names []string) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// directorReleases uploads a release, and deletes it.
func (d *directorDaemon) directorReleases(t *testing.T) {
	t.Helper()
	path, _ := d.tarball("1.2")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d.done("POST", "/releases", string(text), "Content-Type", "application/x-compressed")
	d.refused(400, "", "POST", "/releases", "no tarball")
	var all []struct {
		Name     string
		Versions []struct {
			Version  string
			Deployed bool `json:"currently_deployed"`
		} `json:"release_versions"`
	}
	if d.get("/releases", &all); len(all) != 1 || all[0].Name != "demo" || len(all[0].Versions) != 1 || all[0].Versions[0].Version != "1.2" {
		t.Errorf("got %+v", all)
	}
	var parts struct{ Jobs, Packages []struct{ Name string } }
	if d.get("/releases/demo?version=1.2", &parts); len(parts.Jobs) == 0 || len(parts.Packages) == 0 {
		t.Errorf("got %+v", parts)
	}
	d.directorExport(t)
	d.done("DELETE", "/releases/demo?version=1.2", "")
	d.refused(404, "Release 'demo' doesn't exist", "DELETE", "/releases/demo", "")
}

// directorExport exports the release, which a deployment must have.
func (d *directorDaemon) directorExport(t *testing.T) {
	t.Helper()
	want := `{"deployment_name": "demo", "release_name": "demo", "release_version": "1.2", "stemcell_os": "ubuntu-jammy", "stemcell_version": "1.5", "sha2": true, "jobs": []}`
	d.refused(404, "Deployment 'demo' doesn't exist", "POST", "/releases/export", want)
	manifest, err := os.ReadFile("testdata/demo.yml")
	if err != nil {
		t.Fatal(err)
	}
	d.done("POST", "/deployments", string(manifest))
	d.refused(400, "Release version 'demo/9' not found in deployment 'demo'; it has demo/1.2", "POST", "/releases/export", strings.Replace(want, `"1.2"`, `"9"`, 1))
	if state, events, _ := d.task("POST", "/releases/export", strings.Replace(want, "[]", `[{"name": "none"}]`, 1)); state != "error" || !strings.Contains(events[len(events)-1].Error.Message, "has no job 'none'") {
		t.Errorf("got %s, %+v of a job that is not there", state, events)
	}
	_, result := d.done("POST", "/releases/export", want)
	var made struct {
		ID   string `json:"blobstore_id"`
		SHA1 string
	}
	if err := json.Unmarshal([]byte(result), &made); err != nil {
		t.Fatalf("got %s: %v", result, err)
	}
	status, _, archive := d.call("GET", "/resources/"+made.ID, "")
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(archive)); status != 200 || got != made.SHA1 {
		t.Errorf("got %d, %s; want the digest of %s", status, got, result)
	}
	if diff := cmp.Diff([]string{"./release.MF", "./jobs/web.tgz", "./compiled_packages/greeting.tgz", "./compiled_packages/server.tgz"}, archivedNames(t, archive)); diff != "" {
		t.Error(diff)
	}
	d.refused(404, "not found", "GET", "/resources/export-1", "")
	d.done("DELETE", "/deployments/demo", "")
}

// directorConfigs updates and deletes configs.
func (d *directorDaemon) directorConfigs(t *testing.T) {
	t.Helper()
	if status, _, text := d.call("POST", "/cloud_configs?name=default", "azs: [{name: z1}]\n"); status != 201 {
		t.Errorf("got %d, %s", status, text)
	}
	if status, _, text := d.call("POST", "/configs", `{"type": "cloud", "name": "default", "content": "azs: [{name: z2}]\n", "expected_latest_id": "77"}`); status != http.StatusPreconditionFailed {
		t.Errorf("got %d, %s; want the expected ID checked", status, text)
	}
	var diff struct {
		Diff [][]any
		From struct{ ID string }
	}
	_, _, text := d.call("POST", "/configs/diff", `{"type": "cloud", "name": "default", "content": "azs: [{name: z2}]\n"}`)
	if err := json.Unmarshal(text, &diff); err != nil || diff.From.ID != "1" || len(diff.Diff) != 2 || diff.Diff[0][1] != "removed" || diff.Diff[1][1] != "added" {
		t.Errorf("got %s, %v", text, err)
	}
	var all []struct {
		ID, Type string
		Current  bool
	}
	if d.get("/configs?latest=true&limit=1", &all); len(all) != 1 || all[0].ID != "1" || !all[0].Current {
		t.Errorf("got %+v", all)
	}
	if status, _, text := d.call("DELETE", "/configs?type=cloud&name=default", ""); status != 204 {
		t.Errorf("got %d, %s", status, text)
	}
	d.refused(404, "not found", "DELETE", "/configs?type=cloud&name=default", "")
}

// directorReaders checks what others than admins may do.
func (d *directorDaemon) directorReaders(t *testing.T) {
	t.Helper()
	admin := d.token
	defer func() { d.token = admin }()
	for _, scope := range []string{"bosh.read", "cloud_controller.read"} {
		d.API("POST", "/oauth/clients", e2e.Doc{"client_id": scope, "client_secret": "s", "authorized_grant_types": []string{"client_credentials"}, "authorities": []string{scope}}, nil)
	}
	d.login(url.Values{"grant_type": {"client_credentials"}}, "bosh.read", "s")
	var one struct{ Manifest string }
	if d.get("/deployments/hands", &one); strings.Contains(one.Manifest, e2e.RegistryPassword) || !strings.Contains(one.Manifest, "<redacted>") {
		t.Errorf("got %s; want a manifest without credentials for a reader", one.Manifest)
	}
	d.refused(401, "Require one of the scopes: bosh.admin", "DELETE", "/deployments/hands", "")
	d.refused(401, "Require one of the scopes: bosh.admin", "POST", "/deployments", d.manifestOfHands())
	d.refused(401, "Require one of the scopes: bosh.admin", "POST", "/releases", "x")
	d.login(url.Values{"grant_type": {"client_credentials"}}, "cloud_controller.read", "s")
	d.refused(401, "bosh.read", "GET", "/deployments", "")
	d.refused(401, "bosh.read", "GET", "/tasks/1/output?type=debug", "")
}
