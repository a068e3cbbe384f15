package databroker

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cupola/store/cf"
)

// TestServicesAreWhole looks at all that a service has: its engine's file, its line in
// services, and the three texts that name it.
func TestServicesAreWhole(t *testing.T) {
	docs, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../config/config.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "`" + strings.Join(Names(), "`, `") + "`"; !strings.Contains(string(readme), "services of the built-in broker: "+want) {
		t.Errorf("README.md does not name %s for --data-services", want)
	}
	help := regexp.MustCompile(`Services of the built-in broker: ([a-z0-9, ]+);`).FindSubmatch(config)
	if help == nil || !slices.Equal(strings.Split(string(help[1]), ", "), Names()) {
		t.Errorf("got the help %q of --data-services; want %v", help, Names())
	}
	for _, s := range services() {
		if s.display == "" || s.description == "" || len(s.tags) == 0 || len(s.plans) == 0 {
			t.Errorf("%s: got %+v; want all of it", s.name, s)
		}
		if !strings.Contains(string(docs), "\n| `"+s.name+"` | ") {
			t.Errorf("%s is not in the table of docs/services.md", s.name)
		}
		switch s.engine.(type) {
		case builtIn:
			engineIsWhole(t, s)
		case custom:
			fileIsWhole(t, s)
		}
	}
}

func engineIsWhole(t *testing.T, s service) {
	t.Helper()
	engine := s.engine.(builtIn)
	if s.port == 0 || s.ending == "" || s.software.program == "" || len(s.complaints) == 0 || len(s.software.packages["debian12"]) == 0 {
		t.Errorf("%s: got %+v; want all of it", s.name, s)
	}
	c := s.engine.credentials(access{host: "h.services.internal", user: "u1", password: "p/w", port: s.port})
	for _, key := range []string{"uri", "host", "hostname", "port", "username", "password"} {
		if c[key] == nil {
			t.Errorf("%s: got credentials %v; want %s", s.name, c, key)
		}
	}
	if uri, _ := c["uri"].(string); !strings.Contains(uri, "://u1:p%2Fw@h.services.internal:") {
		t.Errorf("%s: got the uri %q", s.name, uri)
	}
	secret := strings.Repeat("S", 26)
	for what, text := range map[string]string{"setUp": s.engine.setUp(), "revoke": s.engine.revoke("u1"), "script": engine.script(s.plans[0], false), "dump": s.engine.dump(), "load": s.engine.load()} {
		if text == "" || strings.Contains(text, secret) {
			t.Errorf("%s: got %s %q", s.name, what, text)
		}
	}
	for _, e := range engine.env(&cf.DataInstance{Secret: secret}) {
		if e.Value == "" {
			t.Errorf("%s: got no value of %s", s.name, e.Name)
		}
	}
}

// fileIsWhole wants a service of a file to run on its own stack, as a user that a stack has.
func fileIsWhole(t *testing.T, s service) {
	t.Helper()
	f := s.engine.(custom).File
	if f.Image != "preloaded:services-"+s.name || s.software.stack != "services-"+s.name || !strings.HasPrefix(s.software.image, "docker://docker.io/") || f.User == "" || len(f.Command) == 0 {
		t.Errorf("%s: got %+v of %+v; want a user and a command on its own stack", s.name, f, s.software)
	}
	if f.Version != s.version || s.id() != "cupola-file-"+s.name {
		t.Errorf("%s: got the version %q and the ID %q", s.name, s.version, s.id())
	}
}

// TestFileServiceIsReplaced wants an operator's file to replace the built-in service of its name, with the same IDs.
func TestFileServiceIsReplaced(t *testing.T) {
	w, file := newWorld(t), filepath.Join(t.TempDir(), "s3.yml")
	if err := os.WriteFile(file, []byte("name: s3\ndescription: of ours\nversion: 2.0.0\nimage: registry.example.com/s3:2\nports: [9000]\ncredentials: {host: ((host))}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Load([]string{"s3", "memcached", file})
	if len(o.Faults) > 0 {
		t.Fatal(o.Faults)
	}
	w.offer.Store(&o)
	var got []string
	for _, s := range w.offered() {
		got = append(got, s.id()+" "+s.version+" "+s.description)
	}
	if want := []string{"cupola-file-memcached 1.6.0 a cache in memory, in a container of this machine", "cupola-file-s3 2.0.0 of ours"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
	r, err := Status{Store: w.Store, HasFile: func(string, string) bool { return false }, Offer: o}.Report(t.Context())
	if err != nil || !slices.Equal(r.Unprepared(), []string{"memcached"}) || slices.ContainsFunc(r.Services, func(s ServiceStatus) bool { return s.Name == "s3" }) {
		t.Errorf("got %+v, %v; want s3 among the files alone", r, err)
	}
}

func TestPackages(t *testing.T) {
	for _, c := range []struct {
		suite string
		names []string
		want  []string
		err   string
	}{
		{"debian12", []string{"redis"}, []string{"redis-server"}, ""},
		{"jammy", []string{"mysql", "redis"}, []string{"mariadb-server-core-10.6", "mariadb-client-10.6", "redis-server"}, ""},
		{"debian12", []string{"files"}, nil, `invalid --services "files"`},
		{"debian12", []string{"oracle"}, nil, `invalid --services "oracle": choose of postgres, mysql, redis, nats, rabbitmq, smtp, s3, memcached`},
		{"lenny", nil, nil, `invalid --suite "lenny"`},
	} {
		got, _, err := Packages(c.suite, c.names)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s %v: got %v, %v; want %v, %s", c.suite, c.names, got, err, c.want, c.err)
		}
	}
	all, without, err := Packages("debian13", nil)
	if err != nil || !slices.Contains(all, "postgresql-17") || !slices.Contains(all, "redis-server") || !slices.Contains(without, "libllvm*") {
		t.Errorf("got %v without %v, %v; want all", all, without, err)
	}
}

// TestUnprepared wants each service that lacks its programs said, and no other one.
func TestUnprepared(t *testing.T) {
	w := newWorld(t)
	program := redisService().software.program
	w.HasFile = func(stack, pattern string) bool {
		return stack == Stack && pattern == program || stack == "services-s3"
	}
	list := w.ask("GET", "/v2/catalog", "", 200)["services"].([]any)
	for _, one := range list {
		s := one.(object)
		said := strings.Contains(s["description"].(string), "sudo cupola broker prepare --services "+s["name"].(string))
		if want := !slices.Contains([]any{"redis", "files", "s3"}, s["name"]); said != want {
			t.Errorf("got %v", s["description"])
		}
	}
	if got := Missing([]string{"files", "redis", "mysql"}, w.HasFile); !slices.Equal(got, []string{"mysql"}) {
		t.Errorf("got %v", got)
	}
	if got := Prepared(w.HasFile); !slices.Equal(got, []string{"redis", "s3"}) {
		t.Errorf("got %v", got)
	}
	r := Report{Services: []ServiceStatus{{"a", true, false}, {"b", false, false}, {"c", true, true}}}
	if got := r.Unprepared(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %v", got)
	}
}

// TestMySQLIsRuledByUsers looks at the statements for its client.
func TestMySQLIsRuledByUsers(t *testing.T) {
	e := mysql{}
	grant := e.grant("u1", "pw")
	if !strings.Contains(grant, "GRANT ALL PRIVILEGES ON db.* TO 'u1'@'%';") || strings.Contains(grant, "*.*") || strings.Contains(grant, "GRANT OPTION") {
		t.Errorf("got %q; want the user's rights on one database", grant)
	}
	revoke := e.revoke("u1")
	if lock, kill := strings.Index(revoke, "ACCOUNT LOCK"), strings.Index(revoke, "KILL HARD USER"); lock < 0 || kill < lock {
		t.Errorf("got %q; want new connections forbidden before the others end", revoke)
	}
	for _, said := range []struct{ text, want string }{
		{"--------------\nALTER USER 'u' IDENTIFIED BY 'pw'\n--------------\n\nERROR 1290 (HY000) at line 1: read only\n", "1290 (HY000) at line 1: read only"},
		{done + "\n", ""},
	} {
		if got := mysqlService().complaint(said.text); got != said.want {
			t.Errorf("got %q; want %q", got, said.want)
		}
	}
}
