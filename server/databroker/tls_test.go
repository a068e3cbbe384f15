package databroker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"

	"github.com/google/go-cmp/cmp"
)

// TestCredentialsOfTLS holds what apps read: as before where TLS is optional, of TLS alone where it is required.
func TestCredentialsOfTLS(t *testing.T) {
	user, at := "://"+user("n")+":p%2Fw@", "i.services.internal"
	for service, want := range map[string]struct{ plain, secure, jdbc string }{
		"postgres": {"postgres" + user + at + ":5432/db?sslmode=disable", "postgres" + user + at + ":5432/db?sslmode=verify-full&sslrootcert=/etc/cf-system-certificates/trusted-ca-1.crt",
			"&sslmode=verify-full&sslrootcert=/etc/cf-system-certificates/trusted-ca-1.crt"},
		"mysql": {"mysql" + user + at + ":3306/db", "mysql" + user + at + ":3306/db?ssl-mode=VERIFY_IDENTITY&ssl-ca=/etc/cf-system-certificates/trusted-ca-1.crt",
			"&sslMode=VERIFY_IDENTITY&serverSslCert=/etc/cf-system-certificates/trusted-ca-1.crt"},
		"redis":    {"redis" + user + at + ":6379", "rediss" + user + at + ":6380", ""},
		"nats":     {"nats" + user + at + ":4222", "tls" + user + at + ":4222", ""},
		"rabbitmq": {"amqp" + user + at + ":5672/db", "amqps" + user + at + ":5671/db", ""},
	} {
		s, _ := serviceOf(service)
		i, n := &cf.DataInstance{Resource: cf.Resource{GUID: "i"}}, &cf.DataBinding{Resource: cf.Resource{GUID: "n"}, Password: "p/w"}
		trust := func() []byte { return []byte("the CA") }
		if c := s.credentials(i, n, trust); c["uri"] != want.plain || c["tls"] != nil || c["tls_port"] != nil {
			t.Errorf("%s: got %v; want nothing of TLS from a container without", service, c)
		}
		n.TLS = true
		for _, required := range []bool{false, true} {
			i.TLSRequired = required
			c := s.credentials(i, n, trust)
			how := c["tls"].(object)
			jdbc, _ := how["jdbcUrl"].(string)
			if how["uri"] != want.secure || how["required"] != required || how["port"] != s.tlsPort || !strings.HasSuffix(jdbc, want.jdbc) || (jdbc == "") != (want.jdbc == "") {
				t.Errorf("%s: got %v", service, how)
			}
			if diff := cmp.Diff(object{"ca": "the CA"}, how["cert"]); diff != "" {
				t.Error(diff)
			}
			uri, port := want.plain, s.port
			if required {
				uri, port = want.secure, s.tlsPort
			}
			if c["uri"] != uri || c["port"] != port {
				t.Errorf("%s: got %v; want %s, %d", service, c, uri, port)
			}
		}
	}
}

// TestCredentialsWhereTLSIsNoLongerRequired says nothing of TLS to a binding of a server that speaks it only where it is required.
func TestCredentialsWhereTLSIsNoLongerRequired(t *testing.T) {
	s, _ := serviceOf("smtp")
	i, n := &cf.DataInstance{Resource: cf.Resource{GUID: "i"}, TLSRequired: true}, &cf.DataBinding{TLS: true}
	trust := func() []byte { return nil }
	required := s.credentials(i, n, trust)["tls"]
	i.TLSRequired = false
	if later := s.credentials(i, n, trust)["tls"]; required == nil || later != nil {
		t.Errorf("got %v while TLS is required, and %v later", required, later)
	}
}

// TestTLSIsRequired looks at what runs, and at who may connect.
func TestTLSIsRequired(t *testing.T) {
	for _, c := range []struct {
		service         string
		optional        []uint16
		required        []uint16
		without, within string // of the script, where it is optional and where it is required
	}{
		{"postgres", []uint16{5432}, []uint16{5432}, "'host all all all scram-sha-256'", "'hostssl all all all scram-sha-256'"},
		{"mysql", []uint16{3306}, []uint16{3306}, "", " --require-secure-transport=ON"},
		{"redis", []uint16{6379, 6380}, []uint16{6380}, " --port 6379 --tls-port 6380 ", " --port 0 --tls-port 6380 "},
		{"nats", []uint16{4222}, []uint16{4222}, "allow_non_tls: true", "allow_non_tls: false"},
		{"rabbitmq", []uint16{5672, 5671}, []uint16{5671}, "start_tcp_listener(5672", ""},
		{"smtp", []uint16{2525}, []uint16{2525}, "", tlsCertificate + " " + tlsKey},
	} {
		for _, required := range []bool{false, true} {
			i := &cf.DataInstance{Resource: cf.Resource{GUID: "i"}, Service: c.service, Plan: "small", State: cf.DataReady, TLSRequired: required}
			d, _ := desired(i)
			script := d.Action.Run.Args[1]
			ports, has, lacks := c.optional, c.without, c.within
			if required {
				ports, has, lacks = c.required, c.within, c.without
			}
			if !slices.Equal(d.Ports, ports) || d.Checks.Liveness[0].Port != ports[0] || !strings.Contains(script, has) || lacks != "" && strings.Contains(script, lacks) {
				t.Errorf("%s, required %t: got ports %v and %s", c.service, required, d.Ports, script)
			}
			if want := c.service != "smtp" || required; strings.Contains(script, tlsKey) != want || slices.Equal(d.ServerNames, []string{"i.services.internal"}) != want {
				t.Errorf("%s: got names %v", c.service, d.ServerNames)
			}
			var open []uint16
			for _, p := range policies([]*cf.DataInstance{i}, []*cf.DataBinding{{InstanceGUID: "i", AppGUID: "app"}}) {
				open = append(open, p.FirstPort)
			}
			if !slices.Equal(open, ports) {
				t.Errorf("%s: got the ports %v open; want %v", c.service, open, ports)
			}
		}
	}
}

// TestTLSParameter is kept, shown and changed.
func TestTLSParameter(t *testing.T) {
	w := newWorld(t)
	with := func(value string) string {
		return strings.Replace(provisionBody, "{", `{"parameters": {"tls": "`+value+`"}, `, 1)
	}
	said, _ := w.ask("PUT", "/v2/service_instances/i?"+async, with("yes"), 400)["description"].(string)
	if !strings.Contains(said, `tls "yes"; postgres takes `) || !strings.Contains(said, `tls ("optional" or "required")`) {
		t.Errorf("got %q", said)
	}
	files := `{"service_id": "cupola-files", "plan_id": "cupola-files-small", "parameters": {"tls": "required"}}`
	if said := w.ask("PUT", "/v2/service_instances/f?"+async, files, 400)["description"]; said != `invalid parameters: tls "required"; files takes no parameters` {
		t.Errorf("got %q", said)
	}
	w.ask("PUT", "/v2/service_instances/i?"+async, with(requiredTLS), 202)
	w.ready("plain")
	w.write(func(tx *store.Tx) error {
		i, err := store.DataInstances.Get(tx, "i")
		if err != nil {
			return err
		}
		i.State = cf.DataReady
		return store.DataInstances.Update(tx, i)
	})
	for guid, want := range map[string]string{"i": requiredTLS, "plain": optionalTLS} {
		if diff := cmp.Diff(object{"tls": want}, w.ask("GET", "/v2/service_instances/"+guid, "", 200)["parameters"]); diff != "" {
			t.Errorf("%s: %s", guid, diff)
		}
		w.certified = map[string]bool{guid: true}
		w.ask("PATCH", "/v2/service_instances/"+guid+"?"+async, `{"service_id": "cupola-postgres", "parameters": {"tls": "`+want+`"}}`, 200)
	}
	if !(parameters{}).requiresTLS(w.row("i")) || (parameters{TLS: optionalTLS}).requiresTLS(w.row("i")) {
		t.Error("what is restored does not require TLS as its source does, unless another way is asked for")
	}
}

// TestTLSIsChanged makes the container start anew, also to give one a certificate that an earlier version started.
func TestTLSIsChanged(t *testing.T) {
	w := newWorld(t)
	w.ready("i")
	const at = "/v2/service_instances/i?"
	body := func(parameters string) string {
		return `{"service_id": "cupola-postgres", "parameters": {` + parameters + `}}`
	}
	w.ask("PATCH", at+async, body(`"tls": "required", "point_in_time_recovery": true`), 400)
	w.ask("PATCH", at, body(`"tls": "required"`), 422) // it needs to be asynchronous
	backup := &cf.DataBackup{InstanceGUID: "i", Reason: cf.BackupRequested, State: cf.BackupProcessing}
	w.write(func(tx *store.Tx) error { return store.DataBackups.Insert(tx, backup) })
	w.ask("PATCH", at+async, body(`"tls": "required"`), 422) // while it is backed up
	w.write(func(tx *store.Tx) error { return store.DataBackups.Delete(tx, backup.GUID) })
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	for _, want := range []string{requiredTLS, requiredTLS, optionalTLS} { // the second one has no certificate
		w.ask("PATCH", at+async, body(`"tls": "`+want+`"`), 202)
		w.ask("PATCH", at+async, body(`"tls": "`+want+`"`), 422) // while it is under way
		if _, runs := desired(w.row("i")); runs {
			t.Fatal("the old container is still desired")
		}
		w.write(func(tx *store.Tx) error {
			rows, err := store.ActualLRPs.By(tx, "process_guids", processGUID("i"))
			for _, a := range rows {
				_, gone := store.ActualLRPs.Delete(tx, *a)
				err = errors.Join(err, gone)
			}
			return err
		})
		if err := k.move(t.Context(), w.row("i")); err != nil {
			t.Fatal(err)
		}
		if d, runs := desired(w.row("i")); !runs || strings.Contains(d.Action.Run.Args[1], "'hostssl all") != (want == requiredTLS) {
			t.Errorf("got %t, %v; want TLS %s", runs, d.Action.Run, want)
		}
		w.runs("i")
		if err := k.move(t.Context(), w.row("i")); err != nil {
			t.Fatal(err)
		}
		if i := w.row("i"); i.State != cf.DataReady || TLSOf(i) != want || i.Upgrade != cf.UpgradeNone {
			t.Errorf("got %+v; want TLS %s", i, want)
		}
	}
	w.certified = map[string]bool{"i": true}
	w.ask("PATCH", at+async, body(`"tls": "optional"`), 200)
}

// TestBindingOfACertifiedContainer says how to use TLS; one of a container that an earlier version started does not, later neither.
func TestBindingOfACertifiedContainer(t *testing.T) {
	w := newWorld(t)
	w.ready("i")
	secure := func(binding, body string, status int) bool {
		made := w.ask("PUT", "/v2/service_instances/i/service_bindings/"+binding, body, status)["credentials"].(object)
		return made["tls"] != nil
	}
	before := secure("before", bindBody, 201)
	w.certified = map[string]bool{"i": true}
	if before || secure("before", bindBody, 200) || !secure("after", bindBody, 201) {
		t.Error("got TLS in the wrong bindings")
	}
}

// TestBindingOfAChangedInstance is made for what the instance is when its turn comes.
func TestBindingOfAChangedInstance(t *testing.T) {
	w := newWorld(t)
	w.ready("i")
	was := w.row("i")
	change := func(do func(*cf.DataInstance)) {
		w.write(func(tx *store.Tx) error {
			now, err := store.DataInstances.Get(tx, "i")
			if err != nil {
				return err
			}
			do(now)
			return store.DataInstances.Update(tx, now)
		})
	}
	n := &cf.DataBinding{InstanceGUID: "i", Password: "pw", State: cf.DataMaking}
	w.write(func(tx *store.Tx) error { return store.DataBindings.Insert(tx, n) })
	change(func(now *cf.DataInstance) { now.State = cf.DataMaking })
	if err := w.grant(t.Context(), was, n); !errors.Is(err, errBusy) {
		t.Errorf("got %v while the instance is changed", err)
	}
	change(func(now *cf.DataInstance) { now.State, now.TLSRequired = cf.DataReady, true })
	if err := w.grant(t.Context(), was, n); err != nil || !n.TLS || !was.TLSRequired {
		t.Errorf("got %v, %+v; want the binding of an instance that requires TLS", err, n)
	}
}

// TestReload makes a server read each renewed certificate once, again after a failure.
func TestReload(t *testing.T) {
	w := newWorld(t)
	until := time.Now().Add(time.Hour)
	w.Containers = func() []lrp.ContainerStatus {
		return []lrp.ContainerStatus{{GUID: "container", ProcessGUID: processGUID("i"), Phase: lrp.PhaseRunning, ServerCertificateUntil: until},
			{GUID: "app", ProcessGUID: "app", Phase: lrp.PhaseRunning}}
	}
	w.ready("i")
	k := &keeper{broker: w.broker, busy: map[string]bool{}, loaded: map[string]time.Time{}}
	reloads := func() (n int) {
		if err := k.reloadAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.workers.Wait()
		for _, said := range w.said {
			n += strings.Count(said, "pg_reload_conf")
		}
		return n
	}
	if a, b := reloads(), reloads(); a != 1 || b != 1 {
		t.Errorf("got %d and %d reloads; want one", a, b)
	}
	until, w.refuses = until.Add(time.Hour), "ERROR: not now"
	a := reloads()
	w.refuses = ""
	if b := reloads(); a != 2 || b != 3 {
		t.Errorf("got %d and %d reloads; want another one after the failure", a, b)
	}
	w.Containers = func() []lrp.ContainerStatus { return nil }
	if reloads(); len(k.loaded) != 0 {
		t.Errorf("got %v; want containers that are gone forgotten", k.loaded)
	}
}
