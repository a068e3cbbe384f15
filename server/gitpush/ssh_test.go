package gitpush

import (
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	for line, want := range map[string]string{ // "" is refused
		"git-receive-pack '/org/space/app.git'":                "org|space|app.git",
		"git receive-pack 'org/space/app.git'":                 "org|space|app.git",
		"git-receive-pack org/space/app.git":                   "org|space|app.git",
		"git-receive-pack '/my org/it'\\''s/a'\\!'b.git'":      "my org|it's|a!b.git",
		"git-receive-pack '/o/s/a;reboot'":                     "o|s|a;reboot", // a name that nothing has
		"git-receive-pack '/../../etc/passwd'":                 "..|..|etc|passwd",
		"git-receive-pack ''":                                  "",
		"git-receive-pack":                                     "",
		"git-receive-pack '/o/s/a":                             "",
		"git-receive-pack '/o/s/a'\\":                          "",
		"git-receive-pack '/o/s/a'; reboot":                    "",
		"git-receive-pack $(reboot)":                           "",
		"git-receive-pack `reboot`":                            "",
		"git-receive-pack --help '/o/s/a'":                     "",
		"git-shell -c 'x'":                                     "",
		"sh":                                                   "",
		"scp -t /tmp":                                          "",
		"git-receive-pack '" + strings.Repeat("a", 5000) + "'": "",
	} {
		_, path, err := parseCommand(line)
		if got := strings.Join(path, "|"); got != want || (err == nil) != (want != "") {
			t.Errorf("%.60q: got %q, %v; want %q", line, got, err, want)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	f.Add("git-receive-pack '/org/space/app.git'")
	f.Add("git-receive-pack 'it'\\''s'")
	f.Fuzz(func(t *testing.T, line string) {
		service, path, err := parseCommand(line)
		if err == nil && (!strings.HasPrefix(service, "git-") || len(path) == 0) {
			t.Errorf("%q: got %q, %q", line, service, path)
		}
	})
}
