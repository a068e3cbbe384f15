package main

import (
	"strings"
	"testing"
)

const nginxConf = `worker_processes 1;
error_log stderr;
events { worker_connections 64; }
http {
  access_log /dev/stdout;
  server {
    listen {{port}};
    location / { return 200 "hello {{env "NAME"}}"; }
  }
}
`

func TestStagesNginx(t *testing.T) {
	need(t, "nginx")
	s := newStaging(t, map[string]string{"nginx.conf": nginxConf, "buildpack.yml": "nginx: {version: mainline}\n"})
	log := s.mustBuild("-buildpackOrder=" + s.addSystem())
	if got := s.result().LifecycleMetadata.DetectedBuildpack; got != "nginx" {
		t.Fatalf("got buildpack %q; want nginx\n%s", got, log)
	}
	a := start(t, s.unpack(), "", "NAME=<you>", "TMPDIR="+t.TempDir())
	if code, body := a.get("/"); code != 200 || body != "hello &lt;you&gt;" {
		t.Errorf("got %d %q; want the variable\n%s", code, body, a.out.String())
	}
}

// The words are those of nginx-buildpack's supply.go.
func TestNginxFaults(t *testing.T) {
	need(t, "nginx")
	for want, files := range map[string]map[string]string{
		"The listen port value in nginx.conf must be configured to the template `{{port}}`": {"nginx.conf": strings.Replace(nginxConf, "{{port}}", "8080", 1)},
		"nginx.conf contains syntax errors: exit status 1":                                  {"nginx.conf": strings.Replace(nginxConf, "location", "location nonsense", 1)},
		"no match found for 0.7.x in [":                                                     {"nginx.conf": nginxConf, "buildpack.yml": "nginx: {version: 0.7.x}\n"},
		"buildpack.yml asks for openresty":                                                  {"nginx.conf": nginxConf, "buildpack.yml": "dist: openresty\n"},
		"nginx.conf: could not parse config file":                                           {"nginx.conf": "{{wrong}}"},
	} {
		s := newStaging(t, files)
		if code, out := s.build("-buildpackOrder=" + s.addSystem()); code != 223 || !strings.Contains(out, want) {
			t.Errorf("got exit %d and %q; want 223 and %q", code, out, want)
		}
	}
}
