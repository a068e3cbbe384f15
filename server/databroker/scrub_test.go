package databroker

import (
	"testing"

	"cupola/server/databroker/servicefile"
	"cupola/store"
	"cupola/store/cf"
)

// No line has a password of a binding, a secret of the instance, or what a server quotes of a request.
func TestScrub(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.write(func(tx *store.Tx) error {
		err := store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: "i2"}, Service: "nats", Plan: "small", State: cf.DataReady, Secret: "THESECRET"})
		if err != nil {
			return err
		}
		return store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: "i3"}, Service: "store", Plan: "small", State: cf.DataReady, Secret: "SEED",
			Definition: definition{File: servicefile.File{Name: "store", Version: "1.0.0", Ports: []uint16{9000}, Secrets: []string{"root"}}}.text()})
	})
	password := w.ask("PUT", "/v2/service_instances/i1/service_bindings/b1", bindBody, 201)["credentials"].(object)["password"].(string)
	e := w.row("i3")
	svc, _, _ := known(e)
	secret := svc.engine.(custom).secret("root")
	s := &Service{broker: w.broker}
	if err := w.loadScrubbers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ guid, line, want string }{
		{"i1", "LOG:  hello", "LOG:  hello"},
		{"i1", "twice " + password + " and " + password + ".", "twice *** and ***."},
		{"i2", "password " + password, "password " + password}, // another instance's
		{"i2", "secret THESECRET", "secret ***"},
		{"i2", `[ERR] 10.0.0.2:4 - cid:5 - Client parser ERROR, state=0, i=0: proto='"AUTH hunter2\r\n"...'`, "[ERR] 10.0.0.2:4 - cid:5 - Client parser ERROR, state=0, i=0: proto='***"},
		{"i3", "root is " + secret, "root is ***"},
		{"app", "root is " + secret, "root is " + secret},
	} {
		if got := string(s.Scrub(c.guid, []byte(c.line))); got != c.want {
			t.Errorf("%s: got %q; want %q", c.guid, got, c.want)
		}
	}
	if got := string((*Service)(nil).Scrub("i1", []byte("x"))); got != "x" {
		t.Errorf("without a broker: got %q", got)
	}
}
