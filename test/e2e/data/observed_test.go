package data

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// typed is a password that clients send where it does not belong.
const typed = "hunter2"

// TestDataServicesObserved reads logs and metrics of service instances as one who sees them. No password is in a log,
// also after logins that fail and statements that are wrong.
func TestDataServicesObserved(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres,mysql,redis,nats,rabbitmq,smtp,files")
	d.Prepared(prepared...)
	auditor, outsider := reader(d, "auditor", true), reader(d, "outsider", false)
	for service, o := range observed {
		instance := d.DataInstance(service, service)
		k := keyOf(d, instance, "k-"+service)
		o.misuse(d, instance, k)
		hidesPasswords(d, auditor, instance, o.says, typed, k.Password)
		if err := outsider.Call(t.Context(), "GET", "/api/v1/read/"+instance, nil, nil); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: got %v; want the log hidden from one who does not see the instance", service, err)
		}
		hasServer(d, auditor, instance, o.version)
		if out := services(d, "logs", service); !strings.Contains(out, o.says) || strings.Contains(out, k.Password) {
			t.Errorf("%s: got %s; want %q", service, out, o.says)
		}
	}
	cache := d.First("/v3/service_instances?names=redis")
	client, err := net.Dial("tcp", net.JoinHostPort(dataAddress(d, cache), "6379"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	isMeasured(d, auditor, outsider, cache)
	disk := d.DataInstance("files", "disk")
	measures(d, auditor, `persistent_disk_quota{source_id="`+disk+`"}`, 1<<30)
	hasDashboard(d, cache)
}

// observed is what is done to each service, what its log says then, and what its version begins with.
var observed = map[string]struct {
	misuse        func(d *e2e.Daemon, instance string, k serviceKey)
	says, version string
}{
	"postgres": {misusePostgres, "password authentication failed", "PostgreSQL 1"},
	"mysql":    {misuseMySQL, "Access denied", "MariaDB 1"},
	"redis":    {misuseRedis, "Ready to accept connections", ""},
	"nats":     {misuseNATS, "authentication error", "NATS 2."},
	"rabbitmq": {misuseRabbitMQ, "invalid credentials", "RabbitMQ "},
	"smtp":     {misuseSMTP, "Container became healthy", "mails 1"},
}

// inContainer runs a program of the shell in the container of a service, whose script has mark.
func inContainer(d *e2e.Daemon, mark, program string, args ...string) string {
	d.T.Helper()
	pids := databasePIDs(d, mark)
	if len(pids) == 0 {
		d.T.Fatalf("no process has %q", mark)
	}
	out, _ := exec.CommandContext(d.T.Context(), "nsenter", append([]string{"-t", strconv.Itoa(pids[0]), "-m", "-n", "/bin/sh", "-c", program, "sh"}, args...)...).CombinedOutput()
	return string(out) // it fails as it should
}

// wrong are statements that have a password, and cannot be executed.
var wrong = []string{
	"CREATE USER eve IDENTIFIED BY '" + typed + "'", "CREATE USER eve PASSWORD " + typed, "SELECT '" + typed, `SELECT "` + typed + `"`,
	"ALTER USER nobody WITH PASSWORD '" + typed + "'", "SELECT CAST('" + typed + "' AS integer), 1/", "SET PASSWORD FOR nobody = PASSWORD('" + typed + "')",
}

func misusePostgres(d *e2e.Daemon, _ string, k serviceKey) {
	d.T.Helper()
	const client = `PGPASSWORD=$2 exec /usr/lib/postgresql/*/bin/psql -h 127.0.0.1 -U "$1" db -X -c "$3"`
	if said := inContainer(d, "PG_VERSION", client, k.Username, typed, "SELECT 1"); !strings.Contains(said, "authentication failed") {
		d.T.Errorf("got %q; want the login refused", said)
	}
	for _, sql := range wrong {
		if said := inContainer(d, "PG_VERSION", client, k.Username, k.Password, sql); !strings.Contains(said, "ERROR:") {
			d.T.Errorf("%s: got %q; want it refused", sql, said)
		}
	}
}

func misuseMySQL(d *e2e.Daemon, _ string, k serviceKey) {
	d.T.Helper()
	const client = `exec mariadb --no-defaults -h 127.0.0.1 -u "$1" -p"$2" db -e "$3"`
	if said := inContainer(d, "cupola_version", client, k.Username, typed, "SELECT 1"); !strings.Contains(said, "Access denied") {
		d.T.Errorf("got %q; want the login refused", said)
	}
	for _, sql := range wrong {
		if said := inContainer(d, "cupola_version", client, k.Username, k.Password, sql); !strings.Contains(said, "ERROR ") && !strings.Contains(sql, `"`) {
			d.T.Errorf("%s: got %q; want it refused", sql, said)
		}
	}
}

func misuseRedis(d *e2e.Daemon, instance string, k serviceKey) {
	d.T.Helper()
	for _, commands := range [][]string{{"AUTH " + typed}, {"AUTH " + k.Username + " " + typed}, {"AUTH " + k.Username + " " + k.Password, "ACL SETUSER eve on >" + typed, "NONE " + typed},
		{"POST / HTTP/1.1"}, {"*1000000000", typed}} {
		if said := redis(d, instance, commands...); strings.HasPrefix(said, "+OK") && len(commands) == 1 {
			d.T.Errorf("%q: got %q; want it refused", commands, said)
		}
	}
}

// lines sends lines to a port of an instance, and waits until the server closes the connection.
func lines(d *e2e.Daemon, instance, port string, all ...string) {
	d.T.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(dataAddress(d, instance), port))
	if err != nil {
		d.T.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		d.T.Fatal(err)
	}
	_, _ = io.WriteString(c, strings.Join(all, "\r\n")+"\r\n") // the server may have left
	_, _ = io.Copy(io.Discard, c)
}

func misuseNATS(d *e2e.Daemon, instance string, k serviceKey) {
	d.T.Helper()
	login := `CONNECT {"user":"%s","pass":"%s","verbose":true,"name":"%s"}`
	lines(d, instance, "4222", fmt.Sprintf(login, k.Username, typed, ""), "PING")
	lines(d, instance, "4222", fmt.Sprintf(login, k.Username, k.Password, strings.Repeat("x", 5000)))
	lines(d, instance, "4222", typed)
	lines(d, instance, "4222", fmt.Sprintf(login, k.Username, k.Password, ""), "PUB "+typed+" "+typed+" "+typed+" 1")
	lines(d, instance, "4222", fmt.Sprintf(login, k.Username, k.Password, ""), "PUB a "+typed)
}

func misuseRabbitMQ(d *e2e.Daemon, instance string, k serviceKey) {
	d.T.Helper()
	logsIn(d, instance, k).Close()
	bad := k
	bad.Password = typed
	if c, err := amqp(d, instance, bad); err == nil {
		c.Close()
		d.T.Error("a wrong password is accepted")
	}
	lines(d, instance, "5672", "GET /?password="+typed+" HTTP/1.1")
}

func misuseSMTP(d *e2e.Daemon, instance string, k serviceKey) {
	d.T.Helper()
	plain := func(password string) string {
		return "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+k.Username+"\x00"+password))
	}
	lines(d, instance, "2525", "EHLO here", plain(typed), plain(k.Password), typed, "QUIT")
}

// reader is a client of a new user, who sees the space "dev" or nothing.
func reader(d *e2e.Daemon, name string, sees bool) *e2e.Client {
	d.T.Helper()
	var user struct{ ID string }
	d.API("POST", "/Users", e2e.Doc{"userName": name, "password": "reading", "emails": []e2e.Doc{{"value": name}}}, &user)
	d.API("POST", "/v3/users", e2e.Doc{"guid": user.ID}, nil)
	if sees {
		for _, role := range []struct{ kind, of, list string }{
			{"organization_user", "organization", "/v3/organizations?names=cupola"}, {"space_auditor", "space", "/v3/spaces?names=dev"},
		} {
			d.API("POST", "/v3/roles", e2e.Doc{"type": role.kind, "relationships": e2e.Doc{"user": e2e.ToOne(user.ID), role.of: e2e.ToOne(d.First(role.list))}}, nil)
		}
	}
	c, err := e2e.Login(d.T.Context(), "http://"+d.Addr, name, "reading")
	if err != nil {
		d.T.Fatal(err)
	}
	return c
}

// hidesPasswords waits until the log of an instance says something, and wants no password in it.
func hidesPasswords(d *e2e.Daemon, c *e2e.Client, instance, says string, passwords ...string) {
	d.T.Helper()
	var text string
	e2e.Eventually(d.T, time.Minute, func() string {
		var answer struct {
			Envelopes struct {
				Batch []struct {
					Log  struct{ Payload string }
					Tags map[string]string
				}
			}
		}
		err := c.Call(d.T.Context(), "GET", "/api/v1/read/"+instance+"?envelope_types=LOG&limit=1000", nil, &answer)
		text = ""
		for _, e := range answer.Envelopes.Batch {
			line, _ := base64.StdEncoding.DecodeString(e.Log.Payload)
			text += string(line) + "\n"
			if tag := e.Tags["service_instance_id"]; tag != instance || e.Tags["app_id"] != "" || e.Tags["space_name"] != "dev" {
				return fmt.Sprintf("got tags %v", e.Tags)
			}
		}
		if err != nil || !strings.Contains(text, says) {
			return fmt.Sprintf("got %v and %q; want %q", err, text, says)
		}
		return ""
	})
	for _, p := range passwords {
		if strings.Contains(text, p) {
			d.T.Errorf("the log has the password %q: %s", p, text)
		}
	}
}

func hasServer(d *e2e.Daemon, c *e2e.Client, instance, version string) {
	d.T.Helper()
	var server struct{ Version, TLS string }
	if err := c.Call(d.T.Context(), "GET", "/v1/service_instances/"+instance+"/server", nil, &server); err != nil || server.Version == "" || !strings.HasPrefix(server.Version, version) || server.TLS != "optional" {
		d.T.Errorf("got %+v, %v; want the version %s", server, err, version)
	}
}

// value is that of a query of which the answer is one series, with its labels.
func value(ctx context.Context, c *e2e.Client, query string) (n float64, labels map[string]string, err error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := c.Call(ctx, "GET", "/api/v1/query?query="+url.QueryEscape(query), nil, &answer); err != nil {
		return 0, nil, err
	}
	if len(answer.Data.Result) != 1 {
		return 0, nil, fmt.Errorf("got %d series", len(answer.Data.Result))
	}
	n, err = strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
	return n, answer.Data.Result[0].Metric, err
}

// measures waits until a query gives at least so much, and returns the labels.
func measures(d *e2e.Daemon, c *e2e.Client, query string, least float64) (labels map[string]string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		n, l, err := value(d.T.Context(), c, query)
		if err != nil || n < least {
			return fmt.Sprintf("%s: got %v, %v; want %v", query, n, err, least)
		}
		labels = l
		return ""
	})
	return labels
}

// isMeasured wants the metrics of an instance, for those who see it, with its name as it is by then.
func isMeasured(d *e2e.Daemon, auditor, outsider *e2e.Client, instance string) {
	d.T.Helper()
	of := `{source_id="` + instance + `"}`
	for metric, least := range map[string]float64{"memory": 1 << 20, "memory_quota": 256 << 20, "persistent_disk": 1, "persistent_disk_quota": 1 << 30, "connections": 1} {
		if labels := measures(d, auditor, metric+of, least); labels["service_instance_name"] != "redis" || labels["space_name"] != "dev" {
			d.T.Errorf("%s: got labels %v", metric, labels)
		}
	}
	if n, _, err := value(d.T.Context(), auditor, "connections"+of); err != nil || n != 1 {
		d.T.Errorf("got %v connections, %v; want 1", n, err)
	}
	if _, _, err := value(d.T.Context(), outsider, "memory"+of); err == nil || !strings.Contains(err.Error(), "404") {
		d.T.Errorf("got %v; want the metrics hidden from one who does not see the instance", err)
	}
	if err := d.Change("PATCH", "/v3/service_instances/"+instance, e2e.Doc{"name": "renamed"}); err != nil {
		d.T.Fatal(err)
	}
	measures(d, auditor, `memory{source_id="`+instance+`",service_instance_name="renamed"}`, 1<<20)
	measures(d, auditor, `persistent_disk{source_id="`+instance+`",service_instance_name="renamed"}`, 1)
}

// hasDashboard wants the page that a service instance leads to.
func hasDashboard(d *e2e.Daemon, instance string) {
	d.T.Helper()
	var i struct {
		URL string `json:"dashboard_url"`
	}
	d.API("GET", "/v3/service_instances/"+instance, nil, &i)
	if !strings.HasSuffix(i.URL, "/console/services/instances/"+instance) {
		d.T.Fatalf("got %q", i.URL)
	}
	res, err := http.Get(i.URL)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		d.T.Errorf("%s: got %d %s", i.URL, res.StatusCode, res.Header.Get("Content-Type"))
	}
}
