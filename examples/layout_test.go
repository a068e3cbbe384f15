package examples

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// manifest is the little of an app manifest that the examples must agree on.
type manifest struct {
	Applications []struct {
		Name string `yaml:"name"`
	} `yaml:"applications"`
}

func TestEveryAppIsPresentable(t *testing.T) {
	names := map[string]string{
		"cnb": "hello-native", "demo": "demo", "dotnet": "hello-dotnet", "go": "hello-go", "java": "hello-java", "java-war": "hello-war", "nginx": "hello-nginx", "node": "hello-node", "php": "hello-php", "postgres": "hello-postgres", "procfile": "hello-procfile", "python": "hello-python",
		"ruby": "hello-ruby", "static": "hello-static", "websocket": "hello-websocket",
	}
	got := map[string]string{}
	manifests, err := filepath.Glob("*/manifest.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manifests {
		dir := filepath.Dir(file)
		got[dir] = readManifest(t, file).Applications[0].Name
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil || !strings.HasPrefix(string(readme), "# "+names[dir]+"\n") {
			t.Errorf("README.md of %s does not begin with its name (%v)", dir, err)
		}
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("apps (-want +got):\n%s", diff)
	}
}

func readManifest(t *testing.T, file string) manifest {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var parsed manifest
	if err := yaml.Unmarshal(text, &parsed); err != nil || len(parsed.Applications) != 1 {
		t.Fatalf("%s has %d applications (%v); want 1", file, len(parsed.Applications), err)
	}
	return parsed
}

// Apps stand alone, so each has its own copy of the stylesheet.
func TestStylesheetsAreCopies(t *testing.T) {
	want, err := os.ReadFile("go/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"node", "procfile", "python", "ruby", "websocket"} {
		got, err := os.ReadFile(filepath.Join(dir, "style.css"))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s/style.css differs from go/style.css (%v)", dir, err)
		}
	}
}

func TestDemoIsEmbedded(t *testing.T) {
	for _, name := range []string{"manifest.yml", "Staticfile", "public/index.html", "public/live.js"} {
		if info, err := fs.Stat(Demo(), name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// local matches links of a page that stay on its site.
var local = regexp.MustCompile(`(?:href|src)="(/?[^":#]*)"`)

func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*/public/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found %d pages (%v)", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range local.FindAllStringSubmatch(string(text), -1) {
			target := path.Join(filepath.Dir(page), link[1])
			if strings.HasSuffix(link[1], "/") {
				target = path.Join(target, "index.html")
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			}
		}
	}
}
