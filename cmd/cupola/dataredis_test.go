package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"cupola/server"
)

// redisOutlives has a key of a Redis, by which the machine itself connects, and
// kills the database's container: what was set is there, until the key goes.
func (d *daemon) redisOutlives() {
	d.t.Helper()
	instance := d.dataInstance("redis", "cache")
	err := d.change("POST", "/v3/service_credential_bindings", doc{"type": "key", "name": "k", "relationships": doc{"service_instance": toOne(instance)}})
	if err != nil {
		d.t.Fatal(err)
	}
	key := d.first("/v3/service_credential_bindings?service_instance_guids=" + instance)
	var details struct {
		Credentials struct{ Username, Password string }
	}
	d.api("GET", "/v3/service_credential_bindings/"+key+"/details", nil, &details)
	auth := fmt.Sprintf("AUTH %s %s", details.Credentials.Username, details.Credentials.Password)
	if got := d.redis(instance, auth, "SET row kept", "CONFIG GET dir"); !strings.HasPrefix(got, "+OK +OK -NOPERM ") {
		d.t.Fatalf("got %q; want the row set, and no more allowed", got)
	}
	d.killDatabase("users.acl")
	eventually(d.t, 20*time.Second, func() string {
		if got := d.redis(instance, auth, "GET row"); got != "+OK $4 kept" {
			return fmt.Sprintf("got %q; want the row", got)
		}
		return ""
	})
	if err := d.change("DELETE", "/v3/service_credential_bindings/"+key, nil); err != nil {
		d.t.Fatal(err)
	}
	// The row may have come from the database that was being killed.
	eventually(d.t, 20*time.Second, func() string {
		if got := d.redis(instance, auth); !strings.HasPrefix(got, "-WRONGPASS ") {
			return fmt.Sprintf("got %q; want a key that is gone refused", got)
		}
		return ""
	})
	if err := d.change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.t.Fatal(err)
	}
}

// redis gives what an instance answers to commands, in one line.
func (d *daemon) redis(instance string, commands ...string) string {
	d.t.Helper()
	c, err := net.DialTimeout("tcp", net.JoinHostPort(d.dataAddress(instance), "6379"), 5*time.Second)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		d.t.Fatal(err)
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
func (d *daemon) dataAddress(instance string) string {
	d.t.Helper()
	out, err := d.run("broker", "status", "--json", "--data-dir", d.dir)
	var all []server.DataInstance
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	if err != nil {
		d.t.Fatalf("broker status: %v\n%s", err, out)
	}
	for _, i := range all {
		if i.GUID == instance {
			return i.Address
		}
	}
	return ""
}
