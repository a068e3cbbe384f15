package data

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"cupola/test/e2e"
)

// redisOutlives has a key of a Redis, by which the machine itself connects, and
// kills the database's container: what was set is there, until the key goes.
func redisOutlives(d *e2e.Daemon) {
	d.T.Helper()
	instance := d.DataInstance("redis", "cache")
	err := d.Change("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "key", "name": "k", "relationships": e2e.Doc{"service_instance": e2e.ToOne(instance)}})
	if err != nil {
		d.T.Fatal(err)
	}
	key := d.First("/v3/service_credential_bindings?service_instance_guids=" + instance)
	var details struct {
		Credentials struct{ Username, Password string }
	}
	d.API("GET", "/v3/service_credential_bindings/"+key+"/details", nil, &details)
	auth := fmt.Sprintf("AUTH %s %s", details.Credentials.Username, details.Credentials.Password)
	if got := redis(d, instance, auth, "SET row kept", "CONFIG GET dir"); !strings.HasPrefix(got, "+OK +OK -NOPERM ") {
		d.T.Fatalf("got %q; want the row set, and no more allowed", got)
	}
	backup := backUp(d, "cache")
	redis(d, instance, auth, "SET row changed")
	services(d, "restore", "cache", backup, "--force")
	if got := redis(d, instance, auth, "GET row"); got != "+OK $4 kept" {
		d.T.Errorf("got %q; want the row restored", got)
	}
	killDatabase(d, "users.acl")
	e2e.Eventually(d.T, time.Minute, func() string {
		if got := redis(d, instance, auth, "GET row"); got != "+OK $4 kept" {
			return fmt.Sprintf("got %q; want the row", got)
		}
		return ""
	})
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+key, nil); err != nil {
		d.T.Fatal(err)
	}
	// The row may have come from the database that was being killed.
	e2e.Eventually(d.T, time.Minute, func() string {
		if got := redis(d, instance, auth); !strings.HasPrefix(got, "-WRONGPASS ") {
			return fmt.Sprintf("got %q; want a key that is gone refused", got)
		}
		return ""
	})
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}

// redis gives what an instance answers to commands, in one line.
func redis(d *e2e.Daemon, instance string, commands ...string) string {
	d.T.Helper()
	c, err := net.DialTimeout("tcp", net.JoinHostPort(dataAddress(d, instance), "6379"), 5*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		d.T.Fatal(err)
	}
	fmt.Fprintf(c, "%s\r\nQUIT\r\n", strings.Join(commands, "\r\n"))
	var said []string
	for lines := bufio.NewScanner(c); lines.Scan(); {
		said = append(said, lines.Text())
	}
	if n := len(said); n > 0 { // that of QUIT
		said = said[:n-1]
	}
	return strings.Join(said, " ")
}

// dataAddress is where an instance of the built-in broker is; "" for nowhere.
func dataAddress(d *e2e.Daemon, instance string) string {
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
	return ""
}
