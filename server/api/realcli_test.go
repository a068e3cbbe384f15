package api

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/control/quota"
	"cupola/server/deploy"
	"cupola/store"
	"cupola/store/cf"
)

// TestOfficialCLI drives the API with the cf CLI itself, where it is
// installed.
func TestOfficialCLI(t *testing.T) {
	program, err := exec.LookPath("cf")
	if err != nil || testing.Short() {
		t.Skip("needs the cf CLI and time")
	}
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return seedCLI(tx, w) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go w.reconcile(ctx)
	go func() {
		loop := deploy.New(deploy.Config{Store: w.store, Within: quota.WithinProcesses(false), Log: slog.New(slog.DiscardHandler)})
		if err := loop.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	home := t.TempDir()
	w.files(home, map[string][]byte{"sg.json": []byte(`[{"protocol": "tcp", "destination": "10.0.0.0/8", "ports": "80"}]`), "d/index.html": []byte("hi"),
		"d.tgz": tgzOf(t, "./app/run", "x"), "bp.zip": zipOf(t, "bin/compile", "x")})
	w.cf(program, home, "api "+w.url, "API version:    "+Version)
	for _, c := range commands {
		w.cf(program, home, c[0], c[1])
	}
}

// commands are what TestOfficialCLI runs, with a part of what each must print.
var commands = [][2]string{
	{"auth admin pw --origin ldap", "The origin provided is invalid."},
	{"auth admin pw --origin uaa", "OK"},
	{"create-user bad/name pw", "Username must match pattern: [\\p{L}+0-9+\\-_.@'!]+"},
	{"auth admin pw", "OK"},
	{"target -o org -s dev", "space:          dev"},
	{"orgs", "other"},
	{"curl /v2/info", `"api_version":"` + v2Version},
	{"curl /v2/apps?q=name:hello", `"total_results":1`},
	{"curl /v2/none", `"error_code":"CF-NotFound"`},
	{"org org", "quota:                default"},
	{"create-org o2", "OK"},
	{"rename-org o2 o3", "OK"},
	{"delete-org -f o3", "OK"},
	{"space dev", "running security groups:   public_networks, dns"},
	{"create-space sp2", "Assigning role SpaceDeveloper to user admin"},
	{"create-space sp2", "Space 'sp2' already exists."},
	{"delete-space -f sp2", "OK"},
	{"create-user newu pw", "OK"},
	{"create-user newu pw", "User 'newu' already exists."},
	{"set-org-role newu org OrgManager", "OK"},
	{"set-org-role newu org OrgManager", "User 'newu' already has role 'OrgManager' in org 'org'."},
	{"set-space-role newu org dev SpaceDeveloper", "OK"},
	{"org-users org", "newu (uaa)"},
	{"unset-space-role newu org dev SpaceDeveloper", "OK"},
	{"space-users org dev", "space_supporter (uaa)"},
	{"delete-user -f newu", "OK"},
	{"delete-user -f newu", "User 'newu' does not exist."},
	{"feature-flags", "user_org_creation                             disabled"},
	{"enable-feature-flag diego_docker", "OK"},
	{"update-stack cflinuxfs4 --state deprecated", "state:         DEPRECATED"},
	{"create-buildpack newbp bp.zip 2", "Processing uploaded buildpack newbp..."},
	{"update-buildpack newbp --position 1 --lock", "OK"},
	{"buildpacks", "1          newbp                          true      true     READY"},
	{"delete-buildpack -f newbp", "OK"},
	{"create-security-group sg2 sg.json", "OK"},
	{"create-security-group sg2 sg.json", "Security group with name 'sg2' already exists."},
	{"bind-security-group sg2 org", "OK"},
	{"security-groups", "sg2               org            dev     running"},
	{"unbind-security-group sg2 org dev", "OK"},
	{"delete-security-group -f sg2", "OK"},
	{"create-org-quota q2 -m 1G", "OK"},
	{"set-org-quota org q2", "OK"},
	{"org-quota q2", "total memory:            1G"},
	{"set-org-quota org default", "OK"},
	{"update-org-quota q2 -n q3 -m 2G -i 1G -r 20 --reserved-route-ports 3", "OK"},
	{"org-quotas", "q3        2G             1G                20"},
	{"create-org-quota q3", "Organization Quota 'q3' already exists."},
	{"delete-org-quota -f q3", "OK"},
	{"delete-org-quota -f default", "Apply different quotas to those organizations before deleting."},
	{"create-space-quota sq -m 2G -i 512M -r 9 -s 1 -a 1", "OK"},
	{"create-space-quota sq", "Space Quota 'sq' already exists."},
	{"update-space-quota sq -n sq2", "OK"},
	{"space-quotas", "sq2    2G             512M              9"},
	{"set-space-quota dev sq2", "OK"},
	{"space-quota sq2", "app instances:           1"},
	{"space dev", "quota:                     sq2"},
	{"start hello", "memory space_instance_memory_limit_exceeded"},
	{"scale pre -f -l -1", "memory space_instance_memory_limit_exceeded"},
	{"update-space-quota sq2 -l 2M", "This quota is applied to space 'dev' which contains apps running with an unlimited log rate limit."},
	{"scale pre -f -l 1M", "memory space_instance_memory_limit_exceeded"},
	{"run-task hello --command x -m 600M", "memory_in_mb exceeds space instance memory quota"},
	{"delete-space-quota -f sq2", "Remove this quota from all spaces before deleting."},
	{"unset-space-quota dev sq2", "OK"},
	{"delete-space-quota -f sq2", "OK"},
	{"enable-feature-flag route_sharing", "OK"},
	{"create-space shared", "OK"},
	{"create-route apps.test --hostname bar", "OK"},
	{"share-route apps.test --hostname bar -s shared", "OK"},
	{"unshare-route apps.test --hostname bar -s shared", "OK"},
	{"move-route apps.test --hostname bar -s shared", "OK"},
	{"delete-space -f shared", "OK"},
	{"isolation-segments", "shared"},
	{"create-isolation-segment iso2", "OK"},
	{"create-isolation-segment iso2", "already exists"},
	{"set-space-isolation-segment dev iso2", "Ensure it has been entitled to the organization that this space belongs to."},
	{"enable-org-isolation org iso2", "OK"},
	{"isolation-segments", "iso2     org"},
	{"set-org-default-isolation-segment org iso2", "OK"},
	{"org org", "iso2 (default)"},
	{"reset-org-default-isolation-segment org", "OK"},
	{"set-space-isolation-segment dev iso2", "OK"},
	{"space dev", "isolation segment:         iso2"},
	{"disable-org-isolation org iso2", "Currently assigned to: 'dev'"},
	{"reset-space-isolation-segment dev", "OK"},
	{"delete-isolation-segment -f iso2", "Revoke the Organization entitlements for your Isolation Segment."},
	{"disable-org-isolation org iso2", "OK"},
	{"delete-isolation-segment -f iso2", "OK"},
	{"create-route apps.test --hostname foo", "OK"},
	{"create-route apps.test --hostname foo", "Route already exists with host 'foo' for domain 'apps.test'."},
	{"map-route hello apps.test --hostname foo", "OK"},
	{"routes", "dev     foo     apps.test"},
	{"ssh-enabled hello", "ssh is disabled globally"},
	{"set-label app hello k=v", "OK"},
	{"apps --labels k=v", "hello   stopped"},
	{"run-task hello --command x --wait", "Task has completed successfully."},
	{"terminate-task hello 1", "Task state is SUCCEEDED and therefore cannot be canceled"},
	{"tasks hello", "SUCCEEDED"},
	{"revisions pre", "No revisions found"},
	{"start hello", "instances:      1/1"},
	{"scale hello -i 2", "/2\n"}, // it waits for one instance
	{"restart-app-instance hello 0", "OK"},
	{"restart hello --strategy rolling", "instances:      2/2"},
	{"set-env hello A B", "OK"},
	{"restart hello --strategy canary --instance-steps 50,100", "canary-steps:    1/2"},
	{"scale hello -i 3", "Cannot scale this process while a deployment is in flight."},
	{"revisions hello", "this app is in the middle of a deployment. More than one revision is deployed."},
	{"continue-deployment hello", "canary-steps:    2/2"},
	{"cancel-deployment hello", "OK"},
	{"continue-deployment hello", "FAILED"},
	{"restart hello --strategy rolling --max-in-flight 2", "instances:      2/2"},
	{"rollback hello --version 1 -f", "instances:      2/2"},
	{"rollback hello --version 1 -f", "Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision."},
	{"revision hello --version 3", "A:   B"},
	{"revisions hello", "4(deployed)"},
	{"push new -p d", "start command:   ./run"},
	{"push dropapp --droplet d.tgz", "instances:      1/1"},
	{"delete -f -r new", "OK"},
	{"logout", "OK"},
}

func (w *world) files(dir string, files map[string][]byte) {
	w.t.Helper()
	for name, data := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// cf runs the CLI. Its exit code is not looked at: what it prints tells more.
func (w *world) cf(program, home, command, want string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program, strings.Fields(command)...)
	run.Env = append(os.Environ(), "CF_HOME="+home, "HOME="+home, "CF_COLOR=false")
	run.Dir = home
	out, err := run.CombinedOutput()
	if !strings.Contains(string(out), want) {
		w.t.Errorf("cf %s: %v\n%s", command, err, out)
	}
}

// reconcile stages builds, ends tasks and runs apps, as the reconciler would.
func (w *world) reconcile(ctx context.Context) {
	w.derive(ctx, w.progress)
}

func (w *world) progress(tx *store.Tx) error {
	builds, err := store.Builds.By(tx, "states", string(cf.BuildStaging))
	if err != nil {
		return err
	}
	for _, b := range builds {
		if err := w.stageBuild(tx, b); err != nil {
			return err
		}
	}
	tasks, err := store.Tasks.By(tx, "states", string(cf.TaskRunning))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		t.State = cf.TaskSucceeded
		if err := store.Tasks.Update(tx, t); err != nil {
			return err
		}
	}
	return instantiate(tx)
}
