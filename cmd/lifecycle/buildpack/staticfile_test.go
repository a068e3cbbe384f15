package buildpack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/cmd/lifecycle/static"
	"cupola/runtime/contract"
)

func TestParseStaticfile(t *testing.T) {
	tests := []struct {
		text     string
		want     static.Config
		warnings int
		fails    bool
	}{
		{text: ""},
		{text: "root: dist/site/\n", want: static.Config{Root: "dist/site"}},
		{text: "root: ../../etc\n", want: static.Config{Root: "etc"}},
		{text: "directory: visible\nhost_dot_files: true\npushstate: enabled\nforce_https: true\nenable_http2: true\n",
			want: static.Config{Listing: true, DotFiles: true, PushState: true, ForceHTTPS: true, HTTP2: true}},
		{text: "http_strict_transport_security: true\nhttp_strict_transport_security_include_subdomains: true\nhttp_strict_transport_security_preload: true\n",
			want: static.Config{StrictSecurity: "max-age=31536000; includeSubDomains; preload"}},
		{text: "http_strict_transport_security_preload: true\n"},
		{text: "status_codes:\n  404: /404.html\n  5xx: /5.html\n", want: static.Config{StatusPages: map[string]string{"404": "/404.html", "5xx": "/5.html"}}},
		{text: "ssi: enabled\nlocation_include: a/*.conf\nunknown: [1]\n", warnings: 2},
		{text: "root: [1]\n", fails: true},
		{text: "- a\n", fails: true},
		{text: "\x00", fails: true},
	}
	for _, test := range tests {
		got, warnings, err := parseStaticfile([]byte(test.text))
		if (err != nil) != test.fails {
			t.Errorf("%q: got error %v; want one: %v", test.text, err, test.fails)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" || len(warnings) != test.warnings {
			t.Errorf("%q: %d warnings, config (-want +got):\n%s", test.text, len(warnings), diff)
		}
	}
}

func TestParsePasswords(t *testing.T) {
	got, err := parsePasswords([]byte("# users\nann:$apr1$x$y\n\nbob:{SHA}z:comment\n"))
	if diff := cmp.Diff(map[string]string{"ann": "$apr1$x$y", "bob": "{SHA}z"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"": "names no user", "x\n": "a line is not user:hash", ":h\n": "a line is not user:hash", "u:crypt\n": "unknown kind",
	} {
		if _, err := parsePasswords([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

func TestReadStaticfileStaysInTheApp(t *testing.T) {
	app := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Staticfile", "root: missing\n")
	if _, _, err := readStaticfile(app); err == nil || !strings.Contains(err.Error(), "specifies a root directory missing that does not exist") {
		t.Errorf("missing root: got %v", err)
	}
	write("Staticfile", "root: up\n")
	if err := os.Symlink("..", filepath.Join(app, "up")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readStaticfile(app); err == nil {
		t.Error("a root outside the app was accepted")
	}
	write("Staticfile", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(app, "Staticfile.auth")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readStaticfile(app); err == nil {
		t.Error("a Staticfile.auth outside the app was read")
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		files []string
		want  string // the first that takes the app, in order of detection
	}{
		{[]string{"Staticfile", "package.json"}, "staticfile"},
		{[]string{"index.html"}, ""},
		{[]string{"index.html", "package.json"}, "nodejs"},
		{[]string{"index.html", "go.mod"}, "go"},
		{[]string{"main.go"}, ""},
		{[]string{"cmd/main.go", "vendor/modules.txt"}, "go"},
		{[]string{"vendor/gems.txt"}, ""},
		{[]string{"Gemfile", "package.json"}, "ruby"},
		{[]string{"requirements.txt", "Procfile"}, "python"},
		{[]string{"app.py", "pyproject.toml"}, ""},
		{[]string{"Pipfile"}, "python"},
		{[]string{"app.py", "Procfile"}, ""}, // the Procfile is empty
		{[]string{"pom.xml", "package.json"}, "java"},
		{[]string{"web.csproj", "package.json"}, "dotnet-core"},
		{[]string{"web.runtimeconfig.json", "web.dll"}, "dotnet-core"},
		{[]string{"composer.json", "package.json"}, "nodejs"},
		{[]string{"public/index.php"}, "php"},
		{[]string{"a/b/c/index.php"}, ""},
		{[]string{"nginx.conf", "index.html"}, "nginx"},
		{[]string{"r.yml", "app.R"}, "r"},
		{[]string{"Cargo.toml", "src/main.rs"}, "rust"},
		{[]string{"readme"}, ""},
	}
	var order []string
	for _, b := range contract.Buildpacks() {
		order = append(order, b.Language)
	}
	for _, test := range tests {
		app := t.TempDir()
		for _, name := range test.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(app, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(app, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for _, language := range order {
			if got == "" && kinds()[language].detect(app) {
				got = language
			}
		}
		if got != test.want {
			t.Errorf("%v: got %q; want %q", test.files, got, test.want)
		}
	}
}

func FuzzParseStaticfile(f *testing.F) {
	f.Add([]byte("root: a\nstatus_codes: {404: /x}\n"), []byte("u:{SHA}x\n"))
	f.Fuzz(func(t *testing.T, text, auth []byte) {
		c, _, err := parseStaticfile(text)
		if err == nil && c.Root != "" && !filepath.IsLocal(c.Root) {
			t.Errorf("root %q of %q leaves the app", c.Root, text)
		}
		if users, err := parsePasswords(auth); err == nil && len(users) == 0 {
			t.Errorf("%q refuses no request", auth)
		}
	})
}
