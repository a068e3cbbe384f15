package deployment

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// TestManifestsAreCheckedFirst holds that a faulty manifest is refused before
// anything is asked of a daemon or a cluster: there are none.
func TestManifestsAreCheckedFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yml")
	if err := os.WriteFile(file, []byte("name: x\ninstance_groups: [{name: g, jobs: [{name: j, release: none}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, source := capi.Flags{API: "http://127.0.0.1:1", Password: "p"}, sourceFlags{Manifest: file}
	nowhere := clusterFlags{Kubeconfig: filepath.Join(t.TempDir(), "none")}
	for name, run := range map[string]func(*command.Env) error{
		"render":                  (&renderCmd{Flags: flags, sourceFlags: source, Output: "-"}).Run,
		"deploy":                  (&deployCmd{Flags: flags, sourceFlags: source, To: "here"}).Run,
		"deploy --to kubernetes":  (&deployCmd{Flags: flags, sourceFlags: source, To: "kubernetes", clusterFlags: nowhere}).Run,
		"deploy --dry-run, there": (&deployCmd{Flags: flags, sourceFlags: source, To: "kubernetes", DryRun: true, clusterFlags: nowhere}).Run,
	} {
		var out, said bytes.Buffer
		err := run(&command.Env{Ctx: t.Context(), Out: &out, Err: &said})
		if code := command.ExitCode(0); !errors.As(err, &code) || !strings.Contains(said.String(), "none") {
			t.Errorf("%s: got %v, %s; want the fault of the manifest", name, err, said.String())
		}
	}
}
