package web

import (
	"encoding/json"
	"net"
	"testing"

	"cupola/test/e2e"
)

// TestServiceInstance shows service instances of the built-in broker in a browser: what they are, use and log.
func TestServiceInstance(t *testing.T) {
	t.Parallel()
	modules := needBrowser(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "redis,files")
	d.Client()
	d.Prepared("redis")
	instance, directory := d.DataInstance("redis", "cache"), d.DataInstance("files", "disk")
	if err := d.Change("PATCH", "/v3/service_instances/"+instance, e2e.Doc{"parameters": e2e.Doc{"point_in_time_recovery": true}}); err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", net.JoinHostPort(addressOf(d, instance), "6379"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	user := addUser(d, "space_auditor")
	addRole(d, user, "organization_user", "organization", d.First("/v3/organizations?names=cupola"))
	addRole(d, user, "space_auditor", "space", d.First("/v3/spaces?names=dev"))
	drive(t, e2e.Doc{"port": d.Addr[len("127.0.0.1:"):], "admin": e2e.AdminPassword, "password": password, "modules": modules,
		"areas": []string{"service"}, "instance": instance, "directory": directory}, func(t *testing.T, ask string) {
		t.Errorf("the browser's side asks for %q", ask)
	})
}

// addressOf is where the server of a service instance is.
func addressOf(d *e2e.Daemon, instance string) string {
	d.T.Helper()
	out, err := d.Run("broker", "status", "--json", "--data-dir", d.Dir)
	var all struct {
		Instances []struct{ GUID, Address string }
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	if err != nil {
		d.T.Fatalf("broker status: %v\n%s", err, out)
	}
	for _, i := range all.Instances {
		if i.GUID == instance {
			return i.Address
		}
	}
	d.T.Fatalf("%s has no address: %s", instance, out)
	return ""
}
