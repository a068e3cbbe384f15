package push

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// Scripts of buildpacks that fail, or that do a little.
const (
	ends     = "#!/bin/sh\nexit "
	quiet    = "#!/bin/sh\n"
	releases = "#!/bin/sh\necho 'default_process_types: {web: sleep 1000}'\n"
)

// pushFile pushes one file with buildpacks; none has them detected.
func pushFile(t *testing.T, d *e2e.Daemon, app, file string, buildpacks ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte("of no buildpack"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := e2e.Doc{"name": app, "memory": "64M", "disk_quota": "128M", "stack": "minifs", "no-route": true, "health-check-type": "process"}
	if len(buildpacks) > 0 {
		manifest["buildpacks"] = buildpacks
	}
	e2e.WriteManifest(t, dir, manifest)
	return d.Run("push", dir)
}

// logOf are the lines of an app's log, each after its source.
func logOf(t *testing.T, d *e2e.Daemon, app string) (lines []string) {
	t.Helper()
	var answer struct {
		Envelopes struct {
			Batch []struct {
				Tags map[string]string
				Log  struct{ Payload string }
			}
		}
	}
	d.API("GET", "/api/v1/read/"+d.App(app)+"?envelope_types=LOG&limit=1000&start_time=0", nil, &answer)
	for _, e := range answer.Envelopes.Batch {
		line, err := base64.StdEncoding.DecodeString(e.Log.Payload)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, e.Tags["source_type"]+" "+strings.TrimSpace(string(line)))
	}
	return lines
}

// says waits until an app's log has a line, after its source, that contains the text.
func says(t *testing.T, d *e2e.Daemon, app, text string) {
	t.Helper()
	e2e.Eventually(t, 20*time.Second, func() string {
		lines := logOf(t, d, app)
		if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line+"\n", text) }) {
			return ""
		}
		return fmt.Sprintf("the log has no %q: %q", text, lines)
	})
}

// Causes of failed stagings: the error of the build, and the lines of the app's log.
// The errors are those of CC's errors/v2.yml, the lines those of
// buildpackapplifecycle's builder and of CC's staging_completion_handler.rb.
func TestFailedStagingsSayWhy(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.AddBuildpack("works", map[string]string{"bin/supply": quiet, "bin/compile": quiet, "bin/release": releases})
	d.AddBuildpack("no-compile", map[string]string{"bin/compile": ends + "7\n"})
	d.AddBuildpack("no-release", map[string]string{"bin/compile": quiet, "bin/release": ends + "8\n"})
	d.AddBuildpack("no-supply", map[string]string{"bin/supply": ends + "9\n"})
	d.AddBuildpack("no-buildpack", map[string]string{"readme": "any zip is accepted"})
	const general = "StagingError - Staging error: staging failed"
	for _, c := range []struct {
		name       string
		buildpacks []string
		want       string
		log        []string
	}{
		{"detect", nil, "NoAppDetectedError - An app was not successfully detected by any available buildpack",
			[]string{"STG Downloading staticfile_buildpack...\n", "STG Downloaded binary_buildpack", "STG No buildpack takes this app. It has: ", "STG ruby_buildpack         looks for a Gemfile\n", "STG Nearest guess: ", "STG None of the buildpacks detected a compatible application\n", "API Failed to stage build: staging failed\n"}},
		{"compile", []string{"no-compile"}, "BuildpackCompileFailed - App staging failed in the buildpack compile phase",
			[]string{"STG Failed to compile droplet: exit status 7\n", "STG Exit status 223\n", "API Failed to stage build: staging failed\n"}},
		{"release", []string{"no-release"}, "BuildpackReleaseFailed - App staging failed in the buildpack release phase",
			[]string{"STG Failed to build droplet release: exit status 8\n", "STG Exit status 224\n"}},
		{"supply", []string{"no-supply", "works"}, general, []string{"STG Failed to run all supply scripts: exit status 9\n", "STG Exit status 225\n"}},
		{"any-zip", []string{"no-buildpack"}, general, []string{"malformed buildpack does not contain a /bin dir: no-buildpack\n", "STG Exit status 225\n"}},
		{"bad-zip", []string{"leads-out"}, general, []string{"STG Copying leads-out into the container failed: "}},
		{"command", []string{"binary_buildpack"}, "StagingError - Staging error: Start command not specified", []string{"API Failed to stage build: Start command not specified\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := d.On(t)
			if c.name == "bad-zip" { // which all stagings with detection would unpack
				d.AddBuildpack("leads-out", map[string]string{"bin/compile": quiet, "../../../out": "x"})
			}
			out, err := pushFile(t, d, c.name, "index.html", c.buildpacks...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("push: got %v; want %s\n%s", err, c.want, out)
			}
			for _, line := range append(c.log, "API Staging failed for build ") {
				says(t, d, c.name, line)
			}
			if n := strings.Count(strings.Join(logOf(t, d, c.name), "\n"), "into the container failed"); n > 1 {
				t.Errorf("the log names a failed copy %d times", n)
			}
		})
	}
}

// reporter is a buildpack that has a name, a process and a sidecar.
const reporter = `#!/bin/sh
echo 'name: helper
version: 1.2.3' > $3/$4/config.yml
echo 'processes:
- {type: web, command: sleep 1000}
- {type: agent, command: "echo agent runs; sleep 1000", platforms: {cloudfoundry: {sidecar_for: [web]}}}' > $3/$4/launch.yml
`

// A staging shows its environment, and its droplet what the lifecycle reports: the
// detect output of named buildpacks, and the sidecars that one declares.
func TestStagingReports(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.AddBuildpack("first", map[string]string{"bin/supply": "#!/bin/sh\nenv\n"})
	d.AddBuildpack("last", map[string]string{"bin/finalize": reporter})
	if out, err := pushFile(t, d, "reports", "readme", "first", "last"); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	for _, line := range []string{
		"STG CF_INSTANCE_ADDR=\n", "STG CF_INSTANCE_PORT=\n", "STG CF_INSTANCE_PORTS=[]\n", "STG Uploading droplet, build artifacts cache...\n", "STG Uploading complete\n",
		"API Staging complete for build ", "APP/PROC/WEB/SIDECAR/AGENT agent runs\n",
	} {
		says(t, d, "reports", line)
	}
	app := d.App("reports")
	var droplet struct {
		Buildpacks []struct {
			Name          string
			DetectOutput  *string `json:"detect_output"`
			BuildpackName string  `json:"buildpack_name"`
		}
	}
	d.API("GET", "/v3/apps/"+app+"/droplets/current", nil, &droplet)
	if b := droplet.Buildpacks; len(b) != 2 || b[0].Name != "first" || b[0].DetectOutput != nil || b[1].BuildpackName != "helper" || b[1].DetectOutput == nil || *b[1].DetectOutput != "helper" {
		t.Errorf("got buildpacks %+v; want the last one's own name as detect output", b)
	}
	var sidecars struct {
		Resources []struct{ Name, Command, Origin string }
	}
	d.API("GET", "/v3/apps/"+app+"/sidecars", nil, &sidecars)
	if s := sidecars.Resources; len(s) != 1 || s[0].Name != "agent" || s[0].Command != "echo agent runs; sleep 1000" || s[0].Origin != "buildpack" {
		t.Errorf("got sidecars %+v; want the buildpack's", s)
	}
	d.API("POST", "/v3/apps/"+app+"/tasks", e2e.Doc{"command": "env", "name": "env", "memory_in_mb": 32, "disk_in_mb": 64}, nil)
	says(t, d, "reports", "APP/TASK/env CF_INSTANCE_ADDR=\n")
	type event struct{ Buildpack struct{ Name string } }
	var usage struct{ Resources []event }
	d.API("GET", "/v3/app_usage_events?per_page=100", nil, &usage)
	if !slices.ContainsFunc(usage.Resources, func(e event) bool { return e.Buildpack.Name == "last" }) {
		t.Errorf("got usage events %+v; want one with the name of the admin buildpack", usage.Resources)
	}
}
