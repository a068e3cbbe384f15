package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// WaitFor waits for the first thing of a list.
func (d *Daemon) WaitFor(path string) (guid string) {
	d.T.Helper()
	Eventually(d.T, time.Minute, func() string {
		var list struct{ Resources []struct{ GUID string } }
		if d.API("GET", path, nil, &list); len(list.Resources) == 0 {
			return "there is nothing at " + path
		}
		guid = list.Resources[0].GUID
		return ""
	})
	return guid
}

// Bind binds an app to a service instance.
func (d *Daemon) Bind(app, service string) {
	d.T.Helper()
	d.API("POST", "/v3/service_credential_bindings", Doc{"type": "app", "relationships": Doc{"app": ToOne(d.App(app)), "service_instance": ToOne(service)}}, nil)
}

// Build is a build that has ended.
type Build struct {
	State, Error string
	Droplet      struct{ GUID string }
}

// Built waits for the end of a build.
func (d *Daemon) Built(t *testing.T, guid string) (b Build) {
	t.Helper()
	Eventually(t, 60*time.Second, func() string {
		d.API("GET", "/v3/builds/"+guid, nil, &b)
		if b.State == "STAGING" {
			return "the build is STAGING"
		}
		return ""
	})
	return b
}

// App gives the GUID of an app.
func (d *Daemon) App(name string) string {
	d.T.Helper()
	guid, err := d.Client().First(context.Background(), "app "+name, "/v3/apps?names="+url.QueryEscape(name))
	if err != nil {
		d.T.Fatal(err)
	}
	return guid
}

// Get asks an app by its host.
func (d *Daemon) Get(host, path string) (status int, body string, err error) {
	req, err := http.NewRequest("GET", "http://"+d.Addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// Instance is what the stats say of one instance.
type Instance struct {
	Index        int
	State        string
	Host         string
	InstanceGUID string `json:"instance_guid"`
	Uptime       int
	Bindings     struct {
		Revision string
		Current  bool
	}
}

// Stats are the stats of a process's instances.
func (d *Daemon) Stats(app, process string) []Instance {
	d.T.Helper()
	var stats struct{ Resources []Instance }
	d.API("GET", "/v3/apps/"+d.App(app)+"/processes/"+process+"/stats", nil, &stats)
	return stats.Resources
}

// Running waits until n instances of a process run.
func (d *Daemon) Running(app, process string, n int) []Instance {
	d.T.Helper()
	var last []Instance
	Eventually(d.T, 60*time.Second, func() string {
		last = d.Stats(app, process)
		have := 0
		for _, i := range last {
			if i.State == "RUNNING" {
				have++
			}
		}
		if have == n && len(last) == n {
			return ""
		}
		return fmt.Sprintf("%d instances of %s run, want %d: %+v", have, app, n, last)
	})
	return last
}

// Logged waits until an app's log has a line with the text.
func (d *Daemon) Logged(app, text string) {
	d.T.Helper()
	guid := d.App(app)
	c := d.Client()
	Eventually(d.T, time.Minute, func() string {
		lines := c.LogLines(context.Background(), guid)
		for _, l := range lines {
			if strings.Contains(l, text) {
				return ""
			}
		}
		b, _ := json.Marshal(lines)
		return fmt.Sprintf("the log has no %q: %s", text, b)
	})
}

// Change makes a call that ends with a job, and waits for the job.
func (d *Daemon) Change(method, path string, body any) error {
	d.T.Helper()
	job, err := d.Begin(method, path, body)
	if err != nil || job == "" {
		return err
	}
	return d.Client().Job(d.T.Context(), job)
}

// Begin makes a request, and returns the address of its job; "" for none.
func (d *Daemon) Begin(method, path string, body any) (job string, err error) {
	d.T.Helper()
	c := d.Client()
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(d.T.Context(), method, c.URL(path), bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Send(req)
	if err != nil {
		return "", err
	}
	res.Body.Close()
	if res.StatusCode == http.StatusAccepted {
		job = res.Header.Get("Location")
	}
	return job, nil
}

// RestartApp restarts an app, and waits for its one web instance.
func (d *Daemon) RestartApp(app string) {
	d.T.Helper()
	d.API("POST", "/v3/apps/"+d.App(app)+"/actions/restart", nil, nil)
	d.Running(app, "web", 1)
}

// Answers waits until an app's page contains a text.
func (d *Daemon) Answers(app, says string) {
	d.T.Helper()
	Eventually(d.T, time.Minute, func() string {
		status, body, err := d.Get(app+".localhost", "/")
		if err == nil && status == 200 && strings.Contains(body, says) {
			return ""
		}
		return body
	})
}

// ScaleTo scales, and waits until every instance was seen to answer.
func (d *Daemon) ScaleTo(app string, n int) {
	d.T.Helper()
	d.API("POST", "/v3/apps/"+d.App(app)+"/processes/web/actions/scale", Doc{"instances": n}, nil)
	hosts := map[string]bool{}
	for _, i := range d.Running(app, "web", n) {
		hosts[i.Host] = true
	}
	if len(hosts) != n {
		d.T.Errorf("got %d addresses of %d instances", len(hosts), n)
	}
}

// Deleted deletes the app, and waits until its host leads nowhere.
func (d *Daemon) Deleted(app string) {
	d.T.Helper()
	d.API("DELETE", "/v3/apps/"+d.App(app), nil, nil)
	Eventually(d.T, time.Minute, func() string {
		if status, body, _ := d.Get(app+".localhost", "/"); status != 404 {
			return body
		}
		return ""
	})
}

// Flag sets a feature flag.
func (d *Daemon) Flag(name string, on bool) {
	d.T.Helper()
	d.API("PATCH", "/v3/feature_flags/"+name, Doc{"enabled": on}, nil)
}

// First is the GUID of the first resource of a list.
func (d *Daemon) First(path string) string {
	d.T.Helper()
	var list struct{ Resources []struct{ GUID string } }
	d.API("GET", path, nil, &list)
	if len(list.Resources) == 0 {
		d.T.Fatalf("%s is empty", path)
	}
	return list.Resources[0].GUID
}

// Subnet is the network of the daemon's containers.
func (d *Daemon) Subnet() netip.Prefix {
	d.T.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dir, "subnet"))
	if err != nil {
		d.T.Fatal(err)
	}
	return netip.MustParsePrefix(strings.TrimSpace(string(text)))
}

// GUIDs are the GUIDs of instances, sorted.
func GUIDs(list []Instance) (all []string) {
	for _, i := range list {
		all = append(all, i.InstanceGUID)
	}
	slices.Sort(all)
	return all
}
