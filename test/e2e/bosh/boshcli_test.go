package bosh

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// cliCommand is a command of the real bosh CLI, what it must print, and whether it must
// fail. ID stands for the ID of worker/1, DISK for an orphaned disk.
type cliCommand struct {
	args  string
	want  []string
	fails bool
	run   func(*directorDaemon, *testing.T, boshCLI) // instead of the command
}

// boshCLI makes a command of the CLI.
type boshCLI func(args ...string) *exec.Cmd

// cliCommands are the commands of docs/bosh.md, in the order in which they are run.
var cliCommands = []cliCommand{
	{args: "environment", want: []string{"cupola", "(as client 'admin')|admin"}},
	{args: "alias-env here", want: []string{"Using environment", "Succeeded"}},
	{args: "environments", want: []string{"here"}},
	{args: "deployments", want: []string{"0 deployments"}},
	{args: "update-cloud-config cloud.yml", want: []string{"azs:", "Succeeded"}},
	{args: "cloud-config", want: []string{"name: z1"}},
	{args: "update-runtime-config --name tags tags.yml", want: []string{"Succeeded"}},
	{args: "runtime-config --name tags", want: []string{"owner: ops"}},
	{args: "update-config --type other --name one tags.yml", want: []string{"Succeeded"}},
	{args: "configs", want: []string{"cloud", "runtime", "other", "3 configs"}},
	{args: "config 1", want: []string{"azs"}},
	{args: "diff-config --from-id 1 --to-id 2", want: []string{"owner: ops"}},
	{args: "update-config --type other --name one cloud.yml --expected-latest-id 1", want: []string{"The expected latest ID '1' doesn't match the latest ID '3'"}, fails: true},
	{args: "update-config --type other --name one cloud.yml --expected-latest-id 3", want: []string{"+ azs:", "ID 4", "Succeeded"}},
	{args: "delete-config 4", want: []string{"Succeeded"}},
	{args: "config --type other --name one", want: []string{"ID 3", "owner: ops"}},
	{args: "delete-config 4", want: []string{"no matches for id '4' found", "Succeeded"}},
	{args: "delete-config --type other --name one", want: []string{"Succeeded"}},
	{args: "cpi-config", want: []string{"No CPI config"}, fails: true},
	{args: "orphaned-vms", want: []string{"0 orphaned_vms"}},
	{args: "upload-release demo.tgz", want: []string{"Created release|Release has been created", "Succeeded"}},
	{args: "upload-release demo.tgz --name demo --version 1.2", want: []string{"already exists"}},
	{args: "releases", want: []string{"demo", "1.2"}},
	{args: "inspect-release demo/1.2", want: []string{"greeting", "server", "web"}},
	{args: "delete-release demo/1.2", want: []string{"Succeeded"}},
	{args: "stemcells", want: []string{"ubuntu-jammy", "stack host"}},
	{args: "upload-stemcell https://example.com/s.tgz --name bosh-warden-boshlite-ubuntu-jammy-go_agent --version 1.5", want: []string{"already exists"}},
	{args: "-d hands deploy hands.yml --dry-run --skip-upload-releases", want: []string{"+ name: hands", "Preparing deployment: Checked the manifest", "done"}},
	{args: "-d hands deploy hands.yml --skip-upload-releases", want: []string{"Updating instance worker: worker/0", "Task", "done", "Succeeded"}},
	{args: "-d hands deploy hands.yml --skip-upload-releases --max-in-flight 2", want: []string{"done", "Succeeded"}},
	{args: "deployments", want: []string{"hands", "small/1", "1 deployments"}},
	{args: "-d hands deployment", want: []string{"hands", "small/1"}},
	{args: "-d hands manifest", want: []string{"name: hands"}},
	{args: "-d hands instances --ps", want: []string{"worker/", "running", "3 instances"}},
	{args: "-d hands instances --details", want: []string{"started", "vm-"}},
	{args: "-d hands vms --vitals", want: []string{"worker/", "2 vms"}},
	{args: "-d hands errands", want: []string{"checks", "worker", "check"}},
	{args: "-d hands run-errand checks", want: []string{"run 1 with this ephemeral disk", "Exit Code  0"}},
	{args: "-d hands run-errand worker --instance worker/1 --download-logs", want: []string{"checked 1", "nothing is wrong", "1 errand(s)", "Downloading resource"}},
	{args: "-d hands deploy hands.yml --skip-upload-releases -o exit.yml", want: []string{"Succeeded"}},
	{args: "-d hands run-errand checks", want: []string{"run 1 with this ephemeral disk", "Exit Code  3", "Errand 'checks' completed with error (exit code 3)"}, fails: true},
	{args: "-d hands variables", want: []string{"0 variables"}},
	{args: "tasks --recent", want: []string{"create deployment", "run errand", "create release"}},
	{args: "task 1 --all", want: []string{"Task 1", "done"}},
	{args: "task 4 --debug", want: []string{"[task 4]"}},
	{args: "-d hands logs worker/1", want: []string{"Fetching logs for", "Downloading resource", "Succeeded"}},
	{args: "-d hands logs", want: []string{"Downloading resource", "Succeeded"}},
	{args: "-d hands logs worker/1 --agent", want: []string{"cupola has no logs of agents"}, fails: true},
	{args: "-d hands logs worker/7", want: []string{"No instance matches: worker/7"}, fails: true},
	{args: "-d hands stop worker/1", want: []string{"Stopping instances: worker/1", "Succeeded"}},
	{args: "-d hands start worker/1", want: []string{"Starting instances: worker/1", "Succeeded"}},
	{args: "-d hands restart worker/0 --no-converge", want: []string{"Starting instances: worker/0", "Succeeded"}},
	{args: "-d hands recreate worker --dry-run", want: []string{"Would recreate: worker/0", "Would recreate: worker/1", "done"}},
	{args: "-d hands recreate worker/ID", want: []string{"worker/1", "Succeeded"}},
	{args: "-d hands recreate --vms-created-before 2020-01-01T00:00:00Z", want: []string{"Succeeded"}},
	{args: "-d hands deploy hands.yml --skip-upload-releases --recreate-vms-created-before 2030-01-01T00:00:00Z", want: []string{"Updating instance worker: worker/0", "Succeeded"}},
	{args: "instances", want: []string{"Deployment 'hands'", "worker/"}},
	{args: "-d hands cloud-check --report", want: []string{"0 problems", "Succeeded"}},
	{args: "events --deployment hands --object-type deployment", want: []string{"create", "hands", "admin"}},
	{args: "events --before-id 3", want: []string{"create release", "delete release", "2 events"}},
	{args: "events --before 2020-01-01T00:00:00Z", want: []string{"0 events"}},
	{args: "events --after 2020-01-01T00:00:00Z --task 4 --action create --object-type deployment", want: []string{"hands", "2 events"}},
	{args: "events --instance worker/ID --event-user admin", want: []string{"admin create instance worker/"}},
	{args: "events --event-user nobody", want: []string{"0 events"}},
	{args: "events --object-name demo/1.2", want: []string{"2 events"}},
	{args: "events --before yesterday", want: []string{"before_time must be a time like"}, fails: true},
	{args: "event 1", want: []string{"create", "release"}},
	{args: "locks", want: []string{"0 locks"}},
	{args: "cancel-tasks", want: []string{"Succeeded"}},
	{args: "cancel-task 4", want: []string{"Cannot cancel task 4"}, fails: true},
	{args: "-d hands stop worker/1 --hard", want: []string{"Succeeded"}},
	{args: "orphan-disk USED", want: []string{"Succeeded"}},
	{args: "disks --orphaned", want: []string{"worker/1", "1 disks"}},
	{args: "-d hands attach-disk worker/1 DISK", want: []string{"Succeeded"}},
	{args: "delete-disk DISK2", want: []string{"Succeeded"}},
	{args: "-d hands update-resurrection off", want: []string{"cupola always restarts processes"}, fails: true},
	{args: "-d hands snapshots", want: []string{"0 snapshots"}},
	{args: "-d hands take-snapshot worker/1", want: []string{"cupola takes no snapshots"}, fails: true},
	{args: "-d hands ignore worker/1", want: []string{"cupola cannot ignore instances"}, fails: true},
	{args: "-d hands ssh worker -c echo -c hello", want: []string{"stdout | hello"}},
	{args: "-d hands ssh worker/0 -c echo -c hi --results", want: []string{"Stdout", "hi"}},
	{args: "-d hands ssh worker/0 --opts=-v -c true", want: []string{"Exit status 0", "Succeeded"}},
	{args: "-d hands ssh worker/0 -c false", want: []string{"exit status 1"}, fails: true},
	{args: "-d hands ssh worker/0 --private-key cloud.yml --username x -c true", want: []string{"Exit code 1"}, fails: true},
	{args: "-d hands ssh worker/1 -c true", want: []string{"No instance with a VM in deployment 'hands' matches"}, fails: true},
	{args: "events --deployment hands --object-type instance", want: []string{"setup ssh", "cleanup ssh"}},
	{args: "-d hands deploy hands.yml --skip-upload-releases --recreate-persistent-disks", want: []string{"Copying disks: ", "Orphaning disks: ", "Succeeded"}},
	{args: "curl /info", want: []string{`"name":`}},
	{args: "-d hands delete-deployment", want: []string{"Deleting unneeded instances", "Succeeded"}},
	{args: "-d hands delete-deployment", want: []string{"Succeeded"}},
	{args: "upload-release demo.tgz", want: []string{"Succeeded"}},
	{args: "-d demo deploy demo.yml", want: []string{"Compiling packages: server/", "Succeeded"}},
	{run: (*directorDaemon).enteredByCLI},
	{args: "-d demo export-release demo/1.2 ubuntu-jammy/1.5", want: []string{"Downloading resource", "Succeeded"}},
	{args: "-d demo delete-deployment", want: []string{"Succeeded"}},
	{args: "clean-up --all", want: []string{"Succeeded"}},
	{args: "disks --orphaned", want: []string{"0 disks"}},
}

// TestBOSHCLI runs the real bosh CLI, which CUPOLA_BOSH_CLI or PATH names.
func TestBOSHCLI(t *testing.T) {
	t.Parallel()
	cli := os.Getenv("CUPOLA_BOSH_CLI")
	if cli == "" {
		found, err := exec.LookPath("bosh")
		if err != nil {
			t.Skip("needs the bosh CLI in PATH, or CUPOLA_BOSH_CLI; TestDirector makes its requests")
		}
		cli = found
	}
	d := startDirector(t)
	dir := t.TempDir()
	tarball, _ := d.tarball("1.2")
	text, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	demo, err := os.ReadFile("testdata/demo.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cloud.yml": "azs:\n- name: z1\n", "tags.yml": "tags:\n  owner: ops\n", "hands.yml": d.manifestOfHands(), "demo.tgz": string(text), "demo.yml": string(demo),
		"exit.yml": "- {type: replace, path: /instance_groups/name=checks/jobs/0/properties/exit, value: 3}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bosh := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), cli, append([]string{"--tty", "--non-interactive"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "BOSH_ENVIRONMENT="+d.url, "BOSH_CA_CERT="+filepath.Join(d.Dir, "ca.pem"), "BOSH_CLIENT=admin", "BOSH_CLIENT_SECRET="+e2e.AdminPassword)
		return cmd
	}
	for n, c := range cliCommands {
		if c.run != nil {
			c.run(d, t, bosh)
			continue
		}
		args := strings.Fields(d.filled(c.args))
		began := time.Now()
		out, err := bosh(args...).CombinedOutput()
		t.Logf("%d: bosh %s (%s)\n%s", n+1, strings.Join(args, " "), time.Since(began).Round(time.Millisecond), out)
		if (err != nil) != c.fails {
			t.Errorf("bosh %s: got %v\n%s", c.args, err, out)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool {
				return strings.Contains(spaces.ReplaceAllString(string(out), " "), spaces.ReplaceAllString(one, " "))
			}) {
				t.Errorf("bosh %s: got\n%s\nwant %q", c.args, out, want)
			}
		}
	}
}

// enteredByCLI enters an instance of demo by the CLI's ssh, copies files by its scp, and follows
// a log file.
func (d *directorDaemon) enteredByCLI(t *testing.T, bosh boshCLI) {
	t.Helper()
	run := func(args ...string) string {
		t.Helper()
		out, err := bosh(append([]string{"-d", "demo"}, args...)...).CombinedOutput()
		t.Logf("bosh %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			t.Errorf("bosh %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	contains(t, run("ssh", "web/0", "-c", "id -un; echo one > /var/vcap/sys/log/web/own.log"), "stdout | vcap")
	run("scp", "demo.yml", "web/0:/tmp/up")
	run("scp", "web/0:/tmp/up", "back.yml")
	dir := bosh().Dir
	up, err := os.ReadFile(filepath.Join(dir, "demo.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if back, err := os.ReadFile(filepath.Join(dir, "back.yml")); err != nil || string(back) != string(up) {
		t.Errorf("got %q, %v back", back, err)
	}
	contains(t, run("logs", "web/0", "--num", "1", "--quiet"), "stdout | one")
	follow := bosh("-d", "demo", "logs", "web/0", "--follow")
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	follow.Stderr = follow.Stdout
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	defer follow.Wait() //nolint:errcheck // it was interrupted
	lines := bufio.NewScanner(out)
	wanted := func(text string) {
		for lines.Scan() {
			t.Log(lines.Text())
			if strings.Contains(lines.Text(), "stdout | "+text) {
				return
			}
		}
		t.Errorf("the followed log ended before %q", text)
	}
	wanted("one")
	run("ssh", "web/0", "-c", "echo two >> /var/vcap/sys/log/web/own.log")
	wanted("two")
	_ = follow.Process.Signal(os.Interrupt)
	for lines.Scan() { // until it has ended
	}
	contains(t, run("events", "--instance", "web/"+d.guidOf("demo", "web")), "setup ssh", "cleanup ssh")
}

// guidOf is the GUID of the first instance of a group.
func (d *directorDaemon) guidOf(deployment, group string) string {
	d.T.Helper()
	var all []struct{ GUID, Group string }
	d.API("GET", "/v1/deployments/"+deployment+"/instances", nil, &all)
	for _, i := range all {
		if i.Group == group {
			return i.GUID
		}
	}
	d.T.Fatalf("got %+v; want an instance of %s", all, group)
	return ""
}

var spaces = regexp.MustCompile(` +`)

// filled puts the IDs of now into a command.
func (d *directorDaemon) filled(args string) string {
	d.T.Helper()
	if !strings.Contains(args, "ID") && !strings.Contains(args, "USED") && !strings.Contains(args, "DISK") {
		return args
	}
	var instances []struct {
		GUID, Group, Disk string
		Index             int
	}
	d.API("GET", "/v1/deployments/hands/instances", nil, &instances)
	var disks []struct{ GUID string }
	d.API("GET", "/v1/disks?orphaned=true", nil, &disks)
	replaced := []string{}
	if len(disks) > 0 {
		replaced = append(replaced, "DISK2", disks[0].GUID, "DISK", disks[0].GUID)
	}
	for _, i := range instances {
		if i.Group == "worker" && i.Index == 1 {
			replaced = append(replaced, "USED", i.Disk, "ID", i.GUID)
		}
	}
	return strings.NewReplacer(replaced...).Replace(args)
}
