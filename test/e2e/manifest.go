package e2e

import (
	"archive/zip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// OwnBuildpack is what its URL leads to: it says on what it staged, and has the
// app's program started.
var OwnBuildpack = map[string]string{
	"bin/detect":   "#!/bin/sh\n",
	"bin/supply":   "#!/bin/sh\necho staged on $(cat /etc/os-release)\n",
	"bin/finalize": "#!/bin/sh\n",
	"bin/release":  "#!/bin/sh\necho '---\ndefault_process_types:\n  web: ./hello'\n",
}

// Zipped answers with a zip of executable files.
func Zipped(files map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		z := zip.NewWriter(w)
		for name, script := range files {
			header := &zip.FileHeader{Name: name}
			header.SetMode(0o755)
			if f, err := z.CreateHeader(header); err == nil {
				fmt.Fprint(f, script)
			}
		}
		z.Close()
	}
}

// WriteManifest writes the manifest of one app into its directory.
func WriteManifest(t *testing.T, dir string, app Doc) {
	t.Helper()
	text, err := yaml.Marshal(Doc{"applications": []Doc{app}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
