package routing

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// trustScript makes a root of the system's programs with a store of its own, in which is one CA, and
// fetches from hosts with curl there: before the CA is trusted, after that, after it was
// removed, and with it trusted for localhost alone.
const trustScript = `
cupola=$1 data=$2 root=$3 port=$4; shift 4
mkdir -p $root/usr $root/etc/ssl/certs $root/etc/ca-certificates/update.d $root/dev $root/tmp
for d in bin sbin lib lib64; do ln -s usr/$d $root/$d; done
mount --bind /usr $root/usr
mount -t tmpfs tmpfs $root/usr/local
mkdir -p $root/usr/local/share/ca-certificates
mount --bind /dev $root/dev
(cd /usr/share/ca-certificates && ls */*.crt | head -n 1) >$root/etc/ca-certificates.conf
fetch() {
	for host in "$@"; do
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot $root curl -sS -o /dev/null -w "$STAGE $host %{http_code} %{ssl_verify_result}\n" --resolve $host:$port:127.0.0.1 https://$host:$port/ || true
	done
}
STAGE=before fetch "$@"
$cupola trust --data-dir $data --root $root
$cupola trust --data-dir $data --root $root
STAGE=trusted fetch "$@"
$cupola trust --data-dir $data --root $root --remove
STAGE=removed fetch "$@"
$cupola trust --data-dir $data --root $root --only localhost
STAGE=only fetch "$@"
`

// TestTrust lets curl fetch from an app by routes in domains of all kinds, with nothing
// but the system's store of certificates.
func TestTrust(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "update-ca-certificates"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	port := loopback.FreePorts(t, 1)[0]
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--https", fmt.Sprintf("127.0.0.1:%d", port))
	d.PushProbe("probe")
	d.Answers("probe", "ready")
	mapped := []string{"probe.localhost", "www.shop.example", "team.private.example", "www.team.private.example", "a.b.c.deep.example", "any.wild.example"}
	domain := func(name string, private bool) string {
		var made struct{ GUID string }
		body := e2e.Doc{"name": name}
		if private {
			body["relationships"] = e2e.Doc{"organization": e2e.ToOne(d.First("/v3/organizations"))}
		}
		d.API("POST", "/v3/domains", body, &made)
		return made.GUID
	}
	shop, team, deep, wild := domain("shop.example", false), domain("team.private.example", true), domain("b.c.deep.example", true), domain("wild.example", false)
	for _, r := range []struct{ host, domain string }{{"www", shop}, {"", team}, {"www", team}, {"a", deep}, {"*", wild}} {
		mapTo(d, r.host, r.domain)
	}
	for _, host := range mapped {
		answersAt(d, d.Addr, host, 200, "")
	}
	args := append([]string{d.Binary, d.Dir, t.TempDir(), fmt.Sprint(port)}, append(mapped, "api.localhost", "stranger.example")...)
	cmd := e2e.WithMounts("set -- \"$@\"", exec.Command("sh", append([]string{"-ec", trustScript, "trust"}, args...)...))
	out, err := cmd.CombinedOutput()
	said := string(out)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, host := range append(mapped, "api.localhost") {
		wantLine(t, said, "before "+host+" 000 ")
		wantLine(t, said, "trusted "+host+" 200 0")
		wantLine(t, said, "removed "+host+" 000 ")
	}
	wantLine(t, said, "trusted stranger.example 000 ")
	wantLine(t, said, "only probe.localhost 200 0")
	wantLine(t, said, "only api.localhost 200 0")
	wantLine(t, said, "only www.shop.example 000 ")
	store := filepath.Join(args[2], "usr/local/share/ca-certificates")
	for _, want := range []string{"trusted by   the system's store " + store, "already in   the system's store " + store, "removed from the system's store " + store} {
		wantLine(t, said, "  "+want)
	}
}

func wantLine(t *testing.T, said, begin string) {
	t.Helper()
	if !strings.Contains("\n"+said, "\n"+begin) {
		t.Errorf("no line begins with %q: %s", begin, said)
	}
}

// mapTo leads a host of a domain to the probe.
func mapTo(d *e2e.Daemon, host, domain string) {
	d.T.Helper()
	var route struct{ GUID string }
	d.API("POST", "/v3/routes", e2e.Doc{"host": host, "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "domain": e2e.ToOne(domain)}}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": d.App("probe")}}}}, nil)
}
