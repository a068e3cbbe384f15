package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/runtime/contract"
)

// staged reads what one buildpack's launch.yml and the app's Procfile declare.
func staged(t *testing.T, launch, procfile string) ([]process, error) {
	t.Helper()
	dir := t.TempDir()
	b := &builder{config: config{buildDir: filepath.Join(dir, "app"), order: []string{"one"}}, contents: filepath.Join(dir, "contents")}
	for path, text := range map[string]string{filepath.Join(b.depsDir(), b.depsIndex(0), "launch.yml"): launch, filepath.Join(b.buildDir, "Procfile"): procfile} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.processes(dir)
}

// many writes a line for each of n.
func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestTooMuchIsRefused lets a buildpack and a Procfile declare more than the
// limits: the staging fails and says what is accepted.
func TestTooMuchIsRefused(t *testing.T) {
	const sidecar = "- {type: s%d, command: x, platforms: {cloudfoundry: {sidecar_for: [web]}}}\n"
	long := strings.Repeat("x", contract.MaxCommand+1)
	for _, tt := range []struct{ name, launch, procfile, want string }{
		{"sidecars", "processes:\n" + many(3000, sidecar), "", "Failed to build droplet release: too many sidecars: 3000; at most 50 are accepted"},
		{"processes", "processes:\n" + many(51, "- {type: p%d, command: x}\n"), "", "too many process types: 51; at most 50 are accepted"},
		{"long command", "processes:\n- {type: web, command: " + long + "}\n", "", `command of process type "web" is too long: 32769 bytes; at most 32768 are accepted`},
		{"long type", "processes:\n- {type: " + long[:256] + ", command: x}\n", "", "process type is too long: 256 bytes; at most 255 are accepted"},
		{"targets", "processes:\n- {type: s, command: x, platforms: {cloudfoundry: {sidecar_for: [" + many(51, "p%d,") + "]}}}\n", "", `too many process types of sidecar "s": 51`},
		{"Procfile", "{}", many(20_000, "p%d: x\n"), "Failed to read command from Procfile: too many process types: 20000"},
		{"both", "processes:\n" + many(30, "- {type: p%d, command: x}\n"), many(30, "q%d: x\n"), "too many process types: 60"},
		{"as many as fit", "processes:\n" + many(50, sidecar) + many(25, "- {type: p%d, command: x}\n"), many(25, "q%d: x\n"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := staged(t, tt.launch, tt.procfile)
			if tt.want == "" && (err != nil || len(all) != 100) {
				t.Errorf("got %d, %v; want all", len(all), err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v; want %s", err, tt.want)
			}
		})
	}
}

// TestLargeResultIsRefused writes a result that is larger than the daemon reads.
func TestLargeResultIsRefused(t *testing.T) {
	b := &builder{config: config{outputMetadata: filepath.Join(t.TempDir(), "result.json")}}
	r := contract.Result{LifecycleMetadata: contract.LifecycleMetadata{Buildpacks: []contract.UsedBuildpack{{OutputMetadata: map[string]any{"x": strings.Repeat("x", contract.MaxResult)}}}}}
	if err := b.writeOutput(r); err == nil || !strings.Contains(err.Error(), "at most 1048576 are accepted") {
		t.Errorf("got %v; want that it is refused", err)
	}
	if _, err := os.Stat(b.outputMetadata); err == nil {
		t.Error("it was written")
	}
}
