package bbs

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// wholeLRP is an LRP that has nearly all that one can have.
func wholeLRP(t *testing.T, o *e2e.Outside) (d *bbspb.DesiredLRP, shared *servedArchive) {
	shared, own, dependency := serveArchive(t, "of all"), serveArchive(t, "of one"), serveArchive(t, "a tool")
	web := &bbspb.Run{Path: "/home/vcap/probe", User: "vcap", Env: []*bbspb.Env{{Name: "B", Value: "of-run"}}, ResourceLimits: &bbspb.ResourceLimits{Nofile: new(uint64(500))},
		VolumeMountedFiles: []*bbspb.File{{Path: "db/of-run", Content: "of the run"}}}
	side := &bbspb.Run{Path: "/home/vcap/probe", User: "root", Env: []*bbspb.Env{{Name: "PORT", Value: "9090"}}}
	check := func(name string) []*bbspb.Check {
		return []*bbspb.Check{{Http: &bbspb.HTTPCheck{Port: 8080, Path: "/health?name=" + name, IntervalMs: 200}}}
	}
	return &bbspb.DesiredLRP{
		ProcessGuid: "whole", Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 96, DiskMb: 64, MaxPids: 100,
		Env: []*bbspb.Env{{Name: "A", Value: "of-definition"}, {Name: "B", Value: "not"}},
		Setup: serial(
			&bbspb.Action{Download: &bbspb.Download{Artifact: "probe", From: probeTar(t), To: ".", User: "vcap"}},
			said("SETUP", "echo $A $B > /tmp/set-up")),
		Action: &bbspb.Action{Run: web}, Sidecars: []*bbspb.Sidecar{{Action: &bbspb.Action{Run: side}}},
		CheckDefinition: &bbspb.CheckDefinition{Checks: check("live"), ReadinessChecks: check("ready"), LogSource: "HEALTH"},
		ImageLayers: []*bbspb.ImageLayer{
			shared.layer("/shared", bbspb.LayerType_LAYER_TYPE_SHARED), own.layer("/own", bbspb.LayerType_LAYER_TYPE_EXCLUSIVE)},
		LegacyDownloadUser:    "vcap",
		CachedDependencies:    []*bbspb.CachedDependency{{Name: "tool", From: dependency.url, To: "/dep", CacheKey: "tool", ChecksumAlgorithm: "sha256", ChecksumValue: dependency.sum}},
		VolumeMountedFiles:    []*bbspb.File{{Path: "db/user", Content: "me\xff"}},
		EgressRules:           []*bbspb.SecurityGroupRule{{Protocol: "tcp", Destinations: []string{o.Private.String()}, PortRange: &bbspb.PortRange{Start: 79, End: 80}}},
		CertificateProperties: &bbspb.CertificateProperties{OrganizationalUnit: []string{"organization:o", "space:s", "app:a"}}, TrustedSystemCertificatesPath: "/etc/cf-system-certificates",
		Ports: []uint32{8080, 9090}, LogSource: "WEB", LogGuid: "whole", MetricTags: tags("whole"),
		Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(`[{"hostnames":["whole.bbs.test"],"port":8080}]`)}},
	}, shared
}

// lrpHasAll wants an LRP to have all that was asked for.
func (b *bbsClient) lrpHasAll() {
	o := e2e.NewOutside(b.T.(*testing.T))
	d, shared := wholeLRP(b.T.(*testing.T), o)
	events := b.names("/v1/events/lrp_instances.r1", "whole") // other LRPs crash meanwhile
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	a := b.runningLRPs("whole", 1)[0]
	b.serves("whole.bbs.test", "ready")
	for _, want := range []string{"A=of-definition", "B=of-run", "PORT=8080", "CF_INSTANCE_GUID=" + a.InstanceKey.InstanceGuid, "INSTANCE_INDEX=0", "CF_INSTANCE_IP=" + a.NetInfo.Address,
		"CF_SYSTEM_CERT_PATH=/etc/cf-system-certificates", "CF_INSTANCE_CERT=/etc/cf-instance-credentials/instance.crt", "CF_INSTANCE_KEY=/etc/cf-instance-credentials/instance.key"} {
		b.says(a, "/env", want+"\n")
	}
	for path, want := range map[string]string{
		"/shared/f": "-rw-r--r--\nwritten\nof all", "/own/f": "-rw-r--r--\nwritten\nof one", "/dep/f": "-rw-r--r--\nopen /dep/f: read-only file system\na tool",
		"/tmp/set-up": "-rw-r--r--\nwritten\nof-definition not\n", "/etc/cf-service-bindings/db/user": "-r--r-----\nopen /etc/cf-service-bindings/db/user: read-only file system\nme\xff",
		"/etc/cf-service-bindings/db/of-run": "-r--r-----\nopen /etc/cf-service-bindings/db/of-run: read-only file system\nof the run"} {
		if got := b.inside(a, 9090, "/file?path="+path); got != want { // the sidecar is root
			b.T.Errorf("%s: got %q; want %q", path, got, want)
		}
	}
	b.says(a, "/dial?to="+o.Private.String()+":80", "reached")
	b.says(a, "/dial?to="+o.Public.String()+":80", "refused")
	if written, _, _ := strings.Cut(b.inside(a, 8080, "/fill"), " "); len(written) != len("67108864") || written > "67108864" {
		b.T.Errorf("got %s bytes written; want nearly 64 MiB", written)
	}
	if n := shared.asked.Load(); n != 1 {
		b.T.Errorf("got %d downloads of a shared layer", n)
	}
	b.isIdentified(a)
	b.isUnready(a)
	b.isReplaced(a)
	b.logHasAll("whole", "WEB: Downloaded layer/shared (", "WEB: Downloaded tool (", "SETUP: Exit status 0", "CELL: Cell "+a.InstanceKey.CellId+" creating container for instance "+a.InstanceKey.InstanceGuid,
		"successfully created container for instance", "CELL: Starting health monitoring of container", "CELL: Container became healthy",
		"CELL: Container passed the readiness health check. Container marked ready and added to route pool.",
		"CELL: Container failed the readiness health check. Container marked not ready and removed from route pool.", "CELL: Container became unhealthy")
	b.must("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: "whole"})
	b.tellsAll(events)
}

// tellsAll wants Diego's events of what the whole LRP went through: each start
// CLAIMED, RUNNING and perhaps routable apart, unready and ready again, two
// crashes with a new instance each, and its end.
func (b *bbsClient) tellsAll(events func() []string) {
	b.T.Helper()
	want := regexp.MustCompile(`^desired_lrp_created actual_lrp_instance_created (actual_lrp_instance_changed ){4,5}` +
		`((actual_lrp_instance_changed )*actual_lrp_crashed actual_lrp_instance_created actual_lrp_instance_removed (actual_lrp_instance_changed ){2,3}){2}` +
		`desired_lrp_removed (actual_lrp_instance_changed )*actual_lrp_instance_removed $`)
	e2e.Eventually(b.T, time.Minute, func() string {
		if got := strings.Join(events(), " ") + " "; !want.MatchString(got) {
			return got
		}
		return ""
	})
}

// inside asks a port of a container, without the router.
// inside is what a program in a container answers. A sidecar may begin to listen
// after the app's own health check has passed.
func (b *bbsClient) inside(a *bbspb.ActualLRP, port int, path string) (body string) {
	b.T.Helper()
	e2e.Eventually(b.T, time.Minute, func() string {
		var err error
		if body, err = lookInside(a, port, path); errors.Is(err, syscall.ECONNREFUSED) {
			return err.Error()
		}
		if err != nil {
			b.T.Fatal(err)
		}
		return ""
	})
	return body
}

func lookInside(a *bbspb.ActualLRP, port int, path string) (string, error) {
	res, err := (&http.Client{Timeout: time.Minute}).Get(fmt.Sprintf("http://%s:%d%s", a.NetInfo.InstanceAddress, port, path))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func (b *bbsClient) says(a *bbspb.ActualLRP, path, want string) {
	b.T.Helper()
	if got := b.inside(a, 8080, path); !strings.Contains(got, want) {
		b.T.Errorf("%s: got %q; want %q", path, got, want)
	}
}

// file is the content of a file in a container.
func (b *bbsClient) file(a *bbspb.ActualLRP, path string) []byte {
	b.T.Helper()
	lines := strings.SplitN(b.inside(a, 8080, "/file?path="+path), "\n", 3)
	if len(lines) != 3 {
		b.T.Fatalf("%s: %s", path, lines)
	}
	return []byte(lines[2])
}

// isIdentified wants Diego's certificate of an instance.
func (b *bbsClient) isIdentified(a *bbspb.ActualLRP) {
	b.T.Helper()
	pair, err := tls.X509KeyPair(b.file(a, "/etc/cf-instance-credentials/instance.crt"), b.file(a, "/etc/cf-instance-credentials/instance.key"))
	if err != nil {
		b.T.Fatal(err)
	}
	guid, leaf := a.InstanceKey.InstanceGuid, pair.Leaf
	units := slices.Sorted(slices.Values(leaf.Subject.OrganizationalUnit)) // DER has its own order
	if leaf.Subject.CommonName != guid || !slices.Equal(leaf.DNSNames, []string{guid}) || len(leaf.IPAddresses) != 1 || !leaf.IPAddresses[0].Equal(net.ParseIP(a.NetInfo.InstanceAddress)) ||
		!slices.Equal(units, []string{"app:a", "organization:o", "space:s"}) {
		b.T.Errorf("got %v %v %v", leaf.Subject, leaf.DNSNames, leaf.IPAddresses)
	}
	if key, ok := leaf.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < 2048 {
		b.T.Errorf("got a key %T", leaf.PublicKey)
	}
	if left := time.Until(leaf.NotAfter); len(pair.Certificate) != 2 || left > 24*time.Hour || left < 23*time.Hour {
		b.T.Errorf("got %d certificates, valid for %v", len(pair.Certificate), left)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(b.file(a, "/etc/cf-system-certificates/trusted-ca-1.crt"))
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		b.T.Error(err)
	}
}

// isUnready wants the route to be removed and added again, and the instance
// to run all the time.
func (b *bbsClient) isUnready(a *bbspb.ActualLRP) {
	b.T.Helper()
	b.inside(a, 8080, "/health?name=ready&set=503")
	e2e.Eventually(b.T, time.Minute, func() string {
		now := b.actuals("whole")[0]
		status, _, err := b.Get("whole.bbs.test", "/")
		if status == 404 && !now.GetRoutable() && now.State == "RUNNING" {
			return ""
		}
		return fmt.Sprint(status, err, now)
	})
	b.inside(a, 8080, "/health?name=ready&set=200")
	b.serves("whole.bbs.test", "ready")
	if again := b.runningLRPs("whole", 1)[0]; again.InstanceKey.InstanceGuid != a.InstanceKey.InstanceGuid || again.CrashCount != 0 {
		b.T.Errorf("got %v", again)
	}
}

// isReplaced makes an instance become unhealthy, and the next one use up its
// memory.
func (b *bbsClient) isReplaced(a *bbspb.ActualLRP) {
	b.T.Helper()
	b.inside(a, 8080, "/health?name=live&set=500")
	next := b.crashed(1, `Instance became unhealthy: Liveness check unsuccessful: failed to make HTTP request to '/health\?name=live' on port 8080: received status code 500 in \d+ms`)
	go func() { _, _, _ = b.Get("whole.bbs.test", "/eat") }()
	// The check may find the port closed before the end of the process is reported.
	if last := b.crashed(2, `(Instance became unhealthy: .*connection refused; )?WEB: Exited with status 137 \(out of memory\)`); next.InstanceKey.InstanceGuid == a.InstanceKey.InstanceGuid || next.InstanceKey.InstanceGuid == last.InstanceKey.InstanceGuid {
		b.T.Errorf("got %v, %v, %v", a, next, last)
	}
}

// crashed waits until the instance of the whole LRP runs after n crashes.
func (b *bbsClient) crashed(n int32, reason string) (a *bbspb.ActualLRP) {
	b.T.Helper()
	e2e.Eventually(b.T, time.Minute, func() string {
		if a = b.actuals("whole")[0]; a.CrashCount != n || a.State != "RUNNING" || !a.GetRoutable() {
			return fmt.Sprint(a)
		}
		return ""
	})
	if !regexp.MustCompile("^" + reason + "$").MatchString(a.CrashReason) {
		b.T.Errorf("got %q; want %q", a.CrashReason, reason)
	}
	b.serves("whole.bbs.test", "ready")
	return a
}
